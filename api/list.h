/*
 * Lists (contract, section 1): the query's parameters, cursors, pages.  Newest first; a page ends
 * at a row's position, so that rows which are added meanwhile move nothing.
 */
#ifndef MDL_API_LIST_H
#define MDL_API_LIST_H

#include "api/call.h"
#include "core/page.h"

typedef struct mdl_list_t mdl_list_t;

/** Begins with the query of a GET: parameters are asked for by name, each once. */
mdl_list_t *mdl_list_begin(mdl_call_t *call);

/* Filters; NULL or 0 when absent or faulty.  A cursor belongs to the filters it was made with. */

/** 1 to max bytes of UTF-8 without control characters. */
const char *mdl_list_text(mdl_list_t *list, const char *name, apr_size_t max);
/** One of a NULL-terminated list. */
const char *mdl_list_choice(mdl_list_t *list, const char *name, const char *const *choices);
/** An integer from 1 to below 2^53. */
apr_int64_t mdl_list_id(mdl_list_t *list, const char *name);

/** Notes a fault of a parameter. */
void mdl_list_fault(mdl_list_t *list, const char *name, const char *code, const char *message);

/** Ends the reading: refuses with 400 invalid_request (a fault, a parameter that was not asked for)
    or 400 invalid_cursor. */
apr_status_t mdl_list_end(mdl_list_t *list);

/** What a reading effect takes: call->arg of a list of things with ids that are numbers. */
typedef struct {
    mdl_page_t page;
    mdl_list_t *list;
} mdl_listing_t;

/** Ends the reading, and begins with the page that the query asks for. */
apr_status_t mdl_listing_begin(mdl_list_t *list, mdl_listing_t *listing);

/** The whole parse of a list without filters: call->arg becomes an mdl_listing_t. */
apr_status_t mdl_listing_parse(mdl_call_t *call);

/** How many rows to read: one more than the page has, to see whether another follows. */
int mdl_list_rows(const mdl_list_t *list);

/** The rows wanted are those with a smaller id. */
apr_int64_t mdl_list_before(const mdl_list_t *list);
/** The same for ids that are text. */
const char *mdl_list_before_text(const mdl_list_t *list);

/** Writes one row of a page: its members into to.  Returns its position: the row's id as text. */
typedef const char *mdl_list_write_fn(mdl_json_t *to, mdl_call_t *call, const void *row);

/** Writes the page as the answer, from rows (pointers) of which there are up to mdl_list_rows, and
    the Link header of RFC 8288. */
void mdl_list_write(const mdl_list_t *list, const apr_array_header_t *rows,
                    mdl_list_write_fn *write);

#endif
