/*
 * Pages of HTML, as they leave the server: rendered from a template, never kept by a cache, never
 * shown in a frame of others, and with a Content-Security-Policy (CSP Level 3) that allows the
 * style and script elements that the template has, each by its hash, and the places that the page
 * names.
 */
#ifndef MDL_HTML_H
#define MDL_HTML_H

#include <httpd.h>

#include "base/text/json.h"
#include "base/text/template.h"

/** What differs between pages. */
typedef struct {
    /* Sources, each after a space; NULL for none. */
    const char *form_action; /* where a form may lead to, beside its own origin */
    const char *connect;     /* what scripts may send to */
    const char *img;         /* where pictures may come from */
    const char *style;       /* hashes of style elements beside the template's */
    const char *frame;       /* what its frames may show */
    int is_framed;           /* it is an email, shown in a frame of its own origin: it has no rights
                                but its style attributes and pictures */

    const char *referrer_policy; /* the header of that name */
} mdl_html_policy_t;

/**
 * Sends a page; what the client still sends is discarded.  data and list (NULL: none) are what the
 * template gets.  A page of more than 64 KB is sent as it is rendered, without Content-Length.
 */
void mdl_html_send(request_rec *r, int status, const mdl_template_t *template,
                   const mdl_json_t *data, const mdl_template_list_t *list,
                   const mdl_html_policy_t *policy);

/** Answers a script of a page. */
void mdl_html_send_json(request_rec *r, int status, const mdl_json_t *data,
                        const mdl_html_policy_t *policy);

/** The hash of a style element's text, after a space (CSP Level 3, section 2.3.1). */
const char *mdl_html_hash(const char *text, apr_pool_t *p);

/** The same as plain text. */
void mdl_html_send_text(request_rec *r, int status, const char *text,
                        const mdl_html_policy_t *policy);

#endif
