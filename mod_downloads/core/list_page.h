/*
 * A page of a shop's things, newest first: what the reading effect of a list is asked and finds.
 * One that filters has a struct of its own, which begins with this one.
 */
#ifndef MDL_CORE_LIST_PAGE_H
#define MDL_CORE_LIST_PAGE_H

#include <apr_tables.h>

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t before;        /* only ids below this one */
    const char *before_text;   /* the same for ids that are text */
    int rows;                  /* at most */
    apr_array_header_t *found; /* out: pointers to the things */
} mdl_list_page_t;

#endif
