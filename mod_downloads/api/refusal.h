/*
 * Requests below the API that httpd refuses before it calls a handler: a malformed request line or
 * header, an encoded slash, TRACE, a forbidden client.  They get the API's error envelope
 * (contract, section 4) in place of httpd's page.
 */
#ifndef MDL_API_REFUSAL_H
#define MDL_API_REFUSAL_H

/** Registers hook and filter.  An ErrorDocument that is a path or a URL takes precedence. */
void mdl_refusal_register(void);

#endif
