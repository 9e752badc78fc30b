/*
 * Reading the flat XML of an object store's answers.  Private to base/http.
 */
#ifndef MDL_BASE_HTTP_OBJECT_XML_H
#define MDL_BASE_HTTP_OBJECT_XML_H

#include <apr_pools.h>
#include <apr_xml.h>

/** The root of a document, in p; NULL if it is not well-formed.  Whitespace may come first: a store
    sends it to keep a connection while it works. */
const apr_xml_elem *mdl_object_xml_parse(const char *text, apr_size_t length, apr_pool_t *p);

/** The first child with this name, or NULL. */
const apr_xml_elem *mdl_object_xml_child(const apr_xml_elem *element, const char *name);

/** The next sibling with the same name, or NULL. */
const apr_xml_elem *mdl_object_xml_next(const apr_xml_elem *element);

/** The text of the first child with this name, in p; "" if there is none. */
const char *mdl_object_xml_text(const apr_xml_elem *element, const char *name, apr_pool_t *p);

#endif
