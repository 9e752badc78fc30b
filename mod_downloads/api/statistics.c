#include "api/routes.h"

#include "api/list.h"
#include "api/resource.h"
#include "core/shop/day_count.h"

MDL_EFFECT(mdl_day_count_list, mdl_list_page_t *)

static const char *day_write(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_day_count_t *day = row;
    apr_pool_t *p = request->r->pool;

    mdl_json_add_string(to, "date", mdl_day_text(day->day, p));
    for (int i = 0; i < MDL_DAY_KINDS; i++) {
        mdl_json_add_int(to, mdl_day_kind_names[i], day->counts[i]);
    }
    return mdl_resource_id(request, day->day);
}

const mdl_route_t mdl_statistics_routes[] = {
    {"GET", "/statistics", .write_entity = day_write, .parse = mdl_list_parse,
     .effect = mdl_day_count_list_effect, .write = mdl_list_write},
    {0},
};
