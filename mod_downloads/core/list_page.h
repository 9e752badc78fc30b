/*
 * Query and result of a list effect: a page of a shop's entities, newest first.  A list that
 * filters has a struct of its own, which begins with this one.
 */
#ifndef MDL_CORE_LIST_PAGE_H
#define MDL_CORE_LIST_PAGE_H

#include <apr_tables.h>

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t before;      /* only ids below this one */
    const char *before_text; /* the same for ids that are text */
    const char *after; /* the place to go on behind, as it was in next; NULL: from the newest */
    int limit;         /* how many at most */
    int summary;       /* the entities without the lists in them */
    apr_array_header_t *found; /* out: pointers to the entities */
    int more;                  /* out: there are others, even if fewer than limit were found */
    const char *next; /* out: where to go on, where that is not the last one's id; or NULL */
} mdl_list_page_t;

#endif
