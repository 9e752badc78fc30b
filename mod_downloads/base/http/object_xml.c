#include "base/http/object_xml.h"

#include <string.h>

#include <apr_strings.h>

const apr_xml_elem *mdl_object_xml_parse(const char *text, apr_size_t length, apr_pool_t *p)
{
    apr_xml_parser *parser = apr_xml_parser_create(p);
    apr_xml_doc *document;

    while (length > 0 && strchr(" \t\r\n", *text) != NULL) {
        text++;
        length--;
    }
    if (apr_xml_parser_feed(parser, text, length) != APR_SUCCESS) {
        /* The parser is freed, although there is no document. */
        apr_xml_parser_done(parser, NULL);
        return NULL;
    }
    return apr_xml_parser_done(parser, &document) == APR_SUCCESS ? document->root : NULL;
}

static const apr_xml_elem *element_named(const apr_xml_elem *element, const char *name)
{
    while (element != NULL && strcmp(element->name, name) != 0) {
        element = element->next;
    }
    return element;
}

const apr_xml_elem *mdl_object_xml_child(const apr_xml_elem *element, const char *name)
{
    return element_named(element->first_child, name);
}

const apr_xml_elem *mdl_object_xml_next(const apr_xml_elem *element)
{
    return element_named(element->next, element->name);
}

const char *mdl_object_xml_text(const apr_xml_elem *element, const char *name, apr_pool_t *p)
{
    const apr_xml_elem *child = mdl_object_xml_child(element, name);
    const apr_text *first = child != NULL ? child->first_cdata.first : NULL;
    apr_size_t length = 0;
    char *text, *to;

    /* The parser cuts a text at each entity and each line's end. */
    for (const apr_text *piece = first; piece != NULL; piece = piece->next) {
        length += strlen(piece->text);
    }
    text = to = apr_palloc(p, length + 1);
    *to = '\0';
    for (const apr_text *piece = first; piece != NULL; piece = piece->next) {
        to = apr_cpystrn(to, piece->text, strlen(piece->text) + 1);
    }
    return text;
}
