/*
 * Lists (contract, section 1): the query's parameters, cursors, pages.  Newest first.  A cursor
 * names a row's position, so rows that are added meanwhile do not shift the pages.
 */
#ifndef MDL_API_LIST_H
#define MDL_API_LIST_H

#include "api/request.h"
#include "core/list_page.h"

/** Reads the query of a GET; the functions below take its parameters by name, each once. */
mdl_list_t *mdl_list_begin(mdl_request_t *request);

/* Filters; NULL or 0 when absent or faulty.  A cursor is valid only with its own filters. */

/** 1 to max characters, none of them a control character. */
const char *mdl_list_text(mdl_list_t *list, const char *name, apr_size_t max);
/** One of a NULL-terminated list. */
const char *mdl_list_choice(mdl_list_t *list, const char *name, const char *const *choices);
/** An integer from 1 to below 2^53. */
apr_int64_t mdl_list_id(mdl_list_t *list, const char *name);
/** An id of the storefront, decimal digits. */
const char *mdl_list_storefront_id(mdl_list_t *list, const char *name);
/** A time of RFC 3339, section 5.6, after 1970. */
apr_time_t mdl_list_time(mdl_list_t *list, const char *name);

/** Reads view=summary into the page's summary. */
void mdl_list_view(mdl_list_t *list);

/** Notes a fault of a parameter. */
void mdl_list_fault(mdl_list_t *list, const char *name, const char *code, const char *message);

/** Refuses a cursor: 400 invalid_cursor. */
apr_status_t mdl_list_refuse_cursor(mdl_list_t *list);

/** Ends reading and fills page.  Its limit is one row more than is shown, which tells whether
    another page follows.  Refuses a fault or an unknown parameter with 400 invalid_request, a
    cursor with 400 invalid_cursor. */
apr_status_t mdl_list_end(mdl_list_t *list, mdl_list_page_t *page);

/** The same for a list without cursors; *limit gets the number of entries to return. */
apr_status_t mdl_list_end_plain(mdl_list_t *list, int *limit);

/** Refuses any query parameter, for a response that is not a list. */
apr_status_t mdl_list_none(mdl_request_t *request);

/** Parses the query of a list without filters: request->arg becomes an mdl_list_page_t. */
apr_status_t mdl_list_parse(mdl_request_t *request);

/** Writes the mdl_list_page_t at the beginning of request->arg by the route's write_entity, and the
    Link header (RFC 8288). */
void mdl_list_write(mdl_request_t *request);

#endif
