/*
 * What httpd refuses by itself below the API, before a handler is asked: a malformed line
 * or header, an encoded slash, TRACE, an address that may not come.  Its answer gets
 * the API's error envelope (contract, section 4) in place of httpd's page.
 */
#ifndef MDL_API_REFUSAL_H
#define MDL_API_REFUSAL_H

/** Registers the hook and the filter.  An ErrorDocument that is a path or a URL goes first. */
void mdl_refusal_register(void);

#endif
