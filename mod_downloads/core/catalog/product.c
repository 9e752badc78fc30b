#include "core/catalog/product.h"

#include <string.h>

#include <apr_strings.h>

const char *mdl_product_number(const char *product_id)
{
    const char *slash = strrchr(product_id, '/');

    return slash != NULL ? slash + 1 : product_id;
}

const char *mdl_product_title(const char *title, const char *product_id, apr_pool_t *p)
{
    return title != NULL ? title : apr_pstrcat(p, "Product ", mdl_product_number(product_id), NULL);
}

const char *mdl_product_given_title(const char *title, const char *product_id, apr_pool_t *p)
{
    return title != NULL && strcmp(title, mdl_product_title(NULL, product_id, p)) != 0 ? title
                                                                                       : NULL;
}

void mdl_product_json(mdl_json_t *to, const char *title, const char *product_id, apr_pool_t *p)
{
    mdl_json_add_string(to, "title", mdl_product_given_title(title, product_id, p));
    mdl_json_add_string(to, "product_number", mdl_product_number(product_id));
}

void mdl_product_json_note(mdl_json_t *to, const char *name, const char *note, apr_pool_t *p)
{
    mdl_json_t *lines;
    char *rest;

    if (note == NULL) {
        mdl_json_add_null(to, name);
        return;
    }
    lines = mdl_json_add_array(to, name);
    for (rest = apr_pstrdup(p, note); rest != NULL;) {
        char *end = strchr(rest, '\n');

        if (end != NULL) {
            *end++ = '\0';
        }
        mdl_json_add_string(mdl_json_add_object(lines, NULL), "line", rest);
        rest = end;
    }
}
