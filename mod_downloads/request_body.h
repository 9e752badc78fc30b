/*
 * Reading or discarding a request's body, for all handlers.
 */
#ifndef MDL_REQUEST_BODY_H
#define MDL_REQUEST_BODY_H

#include <httpd.h>

/** The Content-Length, -1 for none. */
apr_off_t mdl_request_body_length(request_rec *r);

/** Whether the body has a content coding other than identity (RFC 9110 section 8.4). */
int mdl_request_body_is_encoded(request_rec *r);

/** Discards a body before the response: reads what has arrived of a short one, else has the
    connection closed rather than wait for the rest. */
void mdl_request_body_discard(request_rec *r);

/** For each httpd child, before its threads. */
void mdl_request_body_child_init(apr_pool_t *p);

/**
 * Reads a body of at most max bytes into r->pool; a NUL follows it.  A slow body holds a thread:
 * when more than an eighth of this process's threads wait for bodies of one owner, such as a shop
 * or a network, each waits a second at most.  Returns APR_ENOSPC for a longer body, APR_TIMEUP,
 * AP_FILTER_ERROR when httpd has answered already, or another error.
 */
apr_status_t mdl_request_body_read(request_rec *r, const char *owner, apr_size_t max, char **body,
                                   apr_size_t *length);

/**
 * Reads a body that a form of HTML sends (application/x-www-form-urlencoded; WHATWG URL, section 5)
 * into *fields, names to values, in their order and in r->pool.  It takes as much memory as the
 * body, which is parsed in place, and 48 bytes a field.  Returns OK, 415 for another type or an
 * encoded body, 411 without a Content-Length, 413 for more than max_length bytes, which are not
 * read, 408, or 400 for what is no such form or has more than max_fields.
 */
int mdl_request_body_form(request_rec *r, const char *owner, apr_size_t max_length,
                          apr_size_t max_fields, apr_table_t **fields);

#endif
