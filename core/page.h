/*
 * A page of a shop's things, newest first: what the reading effect of a list is asked and finds.
 */
#ifndef MDL_CORE_PAGE_H
#define MDL_CORE_PAGE_H

#include <apr_tables.h>

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t before;        /* only ids below this one */
    int rows;                  /* at most */
    const char *filter;        /* of the list that has one; NULL: everything */
    apr_array_header_t *found; /* out: pointers to the things */
} mdl_page_t;

#endif
