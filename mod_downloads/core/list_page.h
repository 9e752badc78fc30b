/*
 * Argument and result of a list effect: a page of a shop's entities, newest first.  A list with
 * filters has its own struct, which begins with this one.
 */
#ifndef MDL_CORE_LIST_PAGE_H
#define MDL_CORE_LIST_PAGE_H

#include <apr_tables.h>

#define MDL_LIST_NEWEST "~" /* before_text of the first page: behind every id */

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t before;        /* only lower ids */
    const char *before_text;   /* the same, for ids that are text */
    const char *after;         /* the place to go on from, an earlier next; NULL: the newest */
    int limit;                 /* the most entities */
    int summary;               /* whether to leave out the entities' own lists */
    apr_array_header_t *found; /* out: pointers to the entities */
    int more;         /* out: whether there are more, even if fewer than limit were found */
    const char *next; /* out: where to go on, if not at the last entity's id; or NULL */
} mdl_list_page_t;

#endif
