/*
 * What happened in a shop in the last 30 days, as plots and as a table.
 */
#ifndef MDL_SETTINGS_OVERVIEW_DAYS_H
#define MDL_SETTINGS_OVERVIEW_DAYS_H

#include "base/text/json.h"
#include "core/shop/day_count.h"

#define MDL_OVERVIEW_DAYS 30

/** Adds, from a shop's newest days (mdl_day_count_t): has_days; the array "plots", one for each
    kind, with its total and "bars", each with x, y, height, day and value; and the array "days" for
    the table, newest first, each with its "counts".  A total and a count name their kind in the
    object "plot" (mdl_day_kind_names); a value is count, or for bytes the object size. */
void mdl_overview_add_days(mdl_json_t *data, const apr_array_header_t *days, apr_time_t now,
                           apr_pool_t *p);

#endif
