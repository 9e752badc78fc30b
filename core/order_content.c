#include "core/order_content.h"

#include <apr_hash.h>
#include <apr_uri.h>

#include "core/capability.h"

typedef struct {
    const mdl_order_t *order;
    const mdl_service_t *service;
    apr_pool_t *p;
    mdl_json_t *links;
    mdl_json_t *license_keys;
    apr_int64_t pending;
    apr_hash_t *seen; /* link_id of each link that is there */
} content_t;

/* Without a port: people know their sites by name. */
static const char *host_of(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, url, &uri) == APR_SUCCESS ? uri.hostname : NULL;
}

static void add_assignment(content_t *content, const mdl_assignment_t *assignment)
{
    for (int i = 0; i < assignment->links->nelts; i++) {
        const mdl_order_link_t *link = APR_ARRAY_IDX(assignment->links, i,
                                                     const mdl_order_link_t *);
        mdl_json_t *object;

        if (apr_hash_get(content->seen, &link->link_id, sizeof link->link_id) != NULL) {
            continue;
        }
        apr_hash_set(content->seen, &link->link_id, sizeof link->link_id, link);
        object = mdl_json_add_object(content->links, NULL);
        mdl_json_add_string(object, "title", link->title);
        mdl_json_add_string(object, "url",
                            mdl_capability_visit_url(
                                content->service->secret, content->service->settings->public_url,
                                content->order->page_id, link->link_id, content->p));
        mdl_json_add_string(object, "host", host_of(link->url, content->p));
    }
    for (int i = 0; i < assignment->license_keys->nelts; i++) {
        mdl_json_add_string(mdl_json_add_object(content->license_keys, NULL), "license_key",
                            APR_ARRAY_IDX(assignment->license_keys, i, const char *));
    }
    content->pending += assignment->license_keys_pending;
}

static void add_pending(mdl_json_t *data, const content_t *content)
{
    mdl_json_t *pending;

    if (content->pending == 0) {
        mdl_json_add_null(data, "pending");
        return;
    }
    pending = mdl_json_add_object(data, "pending");
    mdl_json_add_int(pending, "count", content->pending);
    mdl_json_add_bool(pending, "one", content->pending == 1);
    mdl_json_add_bool(pending, "more", mdl_json_length(content->license_keys) > 0);
}

int mdl_order_content_add(mdl_json_t *data, const mdl_order_t *order, const mdl_service_t *service,
                          apr_time_t now, apr_pool_t *p)
{
    content_t content = {.order = order,
                         .service = service,
                         .p = p,
                         .links = mdl_json_add_array(data, "links"),
                         .license_keys = mdl_json_add_array(data, "license_keys"),
                         .seen = apr_hash_make(p)};
    int has_links, has_keys;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(order->assignments, i,
                                                           const mdl_assignment_t *);

        if (mdl_assignment_open(assignment, now)) {
            add_assignment(&content, assignment);
        }
    }
    has_links = mdl_json_length(content.links) > 0;
    has_keys = mdl_json_length(content.license_keys) > 0;
    mdl_json_add_bool(data, "has_links", has_links);
    mdl_json_add_bool(data, "has_license_keys", has_keys || content.pending > 0);
    add_pending(data, &content);
    return has_links || has_keys || content.pending > 0;
}
