#include "api/routes.h"

#include <string.h>

#include <apr_strings.h>

#include "api/list.h"
#include "core/identifier.h"
#include "core/shop/event.h"

#define LATEST   "latest"
#define FEED_MAX 40 /* characters */

/* Reads after: the number of an event, 0, or "latest" for the end of the feed. */
static void events_read_after(mdl_list_t *query, mdl_event_list_t *list)
{
    const char *after = mdl_list_text(query, "after", 16);

    if (after == NULL || strcmp(after, "0") == 0) {
        return;
    }
    list->at_end = strcmp(after, LATEST) == 0;
    list->after = list->at_end ? 0 : mdl_identifier_parse(after);
    if (!list->at_end && list->after <= 0) {
        mdl_list_fault(query, "after", "invalid",
                       "This parameter must be the number of an event, 0 or latest.");
    }
}

static apr_status_t events_parse(mdl_request_t *request)
{
    mdl_event_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_list_t *query = mdl_list_begin(request);

    list->shop_id = request->caller.shop_id;
    request->arg = list;
    events_read_after(query, list);
    list->known_feed = mdl_list_text(query, "feed", FEED_MAX);
    list->problem = &request->problem;
    list->type = mdl_list_choice(query, "type", mdl_event_type_names);
    return mdl_list_end_plain(query, &list->limit);
}

MDL_EFFECT(mdl_event_list, mdl_event_list_t *)

static void events_write(mdl_request_t *request)
{
    const mdl_event_list_t *list = request->arg;
    mdl_json_t *data = mdl_json_add_array(request->response, "data");

    for (int i = 0; i < list->found->nelts; i++) {
        mdl_event_write(mdl_json_add_object(data, NULL),
                        APR_ARRAY_IDX(list->found, i, const mdl_event_t *), request->r->pool);
    }
    mdl_json_add_bool(request->response, "has_more", list->more);
    mdl_json_add_int(request->response, "next_after", list->last);
    mdl_json_add_string(request->response, "feed", list->feed);
}

const mdl_route_t mdl_event_routes[] = {
    {"GET", "/events", .parse = events_parse, .effect = mdl_event_list_effect,
     .write = events_write},
    {0},
};
