/*
 * What a shop had on each day (UTC), counted from its events as they get their numbers: so each
 * event counts once, and no request waits for another at a count.
 */
#ifndef MDL_CORE_SHOP_DAY_COUNT_H
#define MDL_CORE_SHOP_DAY_COUNT_H

#include "core/list_page.h"
#include "core/shop/event.h"

/* As the database has them. */
typedef enum {
    MDL_DAY_ORDERS,    /* new ones */
    MDL_DAY_DOWNLOADS, /* completed */
    MDL_DAY_BYTES,     /* the size of what these delivered */
    MDL_DAY_EMAILS,    /* to customers, taken by the mail server */
    MDL_DAY_KINDS
} mdl_day_kind_t;
extern const char *const mdl_day_kind_names[];

/** A day on which something happened. */
typedef struct {
    apr_int64_t day; /* since 1970-01-01 */
    apr_int64_t counts[MDL_DAY_KINDS];
} mdl_day_count_t;

/** The day of a time, and a day as text, "2026-01-31". */
apr_int64_t mdl_day_of(apr_time_t when);
const char *mdl_day_text(apr_int64_t day, apr_pool_t *p);

/** Adds events (mdl_event_t) to the counts of their days. */
apr_status_t mdl_day_count_add(mdl_db_t *db, const apr_array_header_t *events, apr_pool_t *p);

/** Effect: reads a page of a shop's days (mdl_day_count_t), newest first; days without anything are
    left out. */
apr_status_t mdl_day_count_list(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

#endif
