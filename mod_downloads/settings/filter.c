#include "settings/filter.h"

#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/names.h"
#include "settings/frame.h"

static apr_time_t day_begin(const char *text, apr_pool_t *p)
{
    apr_time_t time = 0;

    return mdl_clock_parse(&time, apr_pstrcat(p, text, "T00:00:00Z", NULL)) == APR_SUCCESS ? time
                                                                                           : 0;
}

static int field_takes(const mdl_filter_field_t *field, const char *value, apr_pool_t *p)
{
    return field->names != NULL ? mdl_names_find(field->names, value) >= 0
           : field->is_day      ? day_begin(value, p) != 0
                                : strlen(value) <= field->max;
}

apr_status_t mdl_filter_read(mdl_filter_t *filter, const mdl_filter_field_t *fields,
                             const mdl_visit_t *visit)
{
    *filter = (mdl_filter_t){.p = visit->r->pool, .fields = fields};
    for (int i = 0; fields[i].name != NULL; i++) {
        const char *value = mdl_visit_parameter(visit, fields[i].name);

        if (value != NULL && field_takes(&fields[i], value, filter->p)) {
            filter->values[i] = value;
        } else if (value != NULL && fields[i].max != 0) {
            return APR_EINVAL;
        }
    }
    return APR_SUCCESS;
}

const char *mdl_filter_value(const mdl_filter_t *filter, const char *name)
{
    for (int i = 0; filter->fields[i].name != NULL; i++) {
        if (strcmp(filter->fields[i].name, name) == 0) {
            return filter->values[i];
        }
    }
    return NULL;
}

apr_time_t mdl_filter_day(const mdl_filter_t *filter, const char *name)
{
    const char *value = mdl_filter_value(filter, name);

    return value != NULL ? day_begin(value, filter->p) : 0;
}

static void filter_add_choice(mdl_json_t *to, const mdl_filter_t *filter, int i)
{
    const mdl_filter_field_t *field = &filter->fields[i];

    mdl_frame_add_choice(
        mdl_json_add_object(to, apr_pstrcat(filter->p, "chosen_", field->name, NULL)), field->names,
        mdl_names_find(field->names, filter->values[i]));
}

void mdl_filter_add(mdl_json_t *to, const mdl_filter_t *filter)
{
    const char *query = "";

    for (int i = 0; filter->fields[i].name != NULL; i++) {
        const mdl_filter_field_t *field = &filter->fields[i];
        const char *value = filter->values[i];

        mdl_json_add_string(to, field->name, value);
        if (field->names != NULL) {
            filter_add_choice(to, filter, i);
        }
        if (value != NULL) {
            query = apr_pstrcat(filter->p, query, field->name, "=",
                                ap_escape_urlencoded(filter->p, value), "&", NULL);
        }
    }
    mdl_json_add_string(to, "query", query);
    mdl_json_add_bool(to, "filtered", *query != '\0');
}
