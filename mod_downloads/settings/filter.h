/*
 * The filter of a list: the parameters of its query that say what is listed, as its form sends
 * them and as the link to the next page repeats them.
 */
#ifndef MDL_SETTINGS_FILTER_H
#define MDL_SETTINGS_FILTER_H

#include <apr_time.h>

#include "base/text/json.h"
#include "settings/visit.h"

#define MDL_FILTER_FIELDS 8 /* the most of one list */

/** A parameter, of one of three kinds; an array of them ends with one without a name. */
typedef struct {
    const char *name;
    apr_size_t max;           /* any text of at most so many bytes */
    const char *const *names; /* one of these (base/names.h) */
    int is_day;               /* a day as <input type="date"> writes it, in UTC */
} mdl_filter_field_t;

/** What a query asks for. */
typedef struct {
    apr_pool_t *p; /* the request's */
    const mdl_filter_field_t *fields;
    const char *values[MDL_FILTER_FIELDS]; /* NULL: not asked for */
} mdl_filter_t;

/** Reads a visit's query; what is no choice and no day is left out.  APR_EINVAL for a text that is
    too long. */
apr_status_t mdl_filter_read(mdl_filter_t *filter, const mdl_filter_field_t *fields,
                             const mdl_visit_t *visit);

/** A parameter's value; NULL when it is not asked for. */
const char *mdl_filter_value(const mdl_filter_t *filter, const char *name);

/** The beginning of the day that a parameter names; 0 for none. */
apr_time_t mdl_filter_day(const mdl_filter_t *filter, const char *name);

/** Adds each value under its parameter's name, for a choice also the object "chosen_<name>" (see
    mdl_frame_add_choice); "filtered", whether anything is asked for; and "query", which the link to
    another page has before its place: "?{{query}}before={{before}}". */
void mdl_filter_add(mdl_json_t *to, const mdl_filter_t *filter);

#endif
