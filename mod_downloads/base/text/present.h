/*
 * Sizes and dates formatted for people.
 */
#ifndef MDL_BASE_TEXT_PRESENT_H
#define MDL_BASE_TEXT_PRESENT_H

#include <apr_pools.h>
#include <apr_time.h>

#include "base/text/json.h"

/**
 * Adds a size for a template to format in its language, in decimal units, as is usual for
 * downloads: {"bytes":2345678,"whole":2,"tenth":3,"unit":"MB"}.  tenth is null for 100 units and
 * more, and for bytes, whose unit is "byte".
 */
void mdl_present_size(mdl_json_t *to, const char *name, apr_int64_t bytes);

/**
 * Adds a time in UTC for a template to format in its language:
 * {"year":2026,"month":"11","day":"21", "day_number":21,"time":"10:15","rfc3339":"2026-…"}.  0 adds
 * null.
 */
void mdl_present_date(mdl_json_t *to, const char *name, apr_time_t when);

/** "21 November 2026", in UTC, allocated from p. */
const char *mdl_present_date_text(apr_time_t when, apr_pool_t *p);

#endif
