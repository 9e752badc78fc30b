#include "settings/pages.h"

#include <apr_time.h>

#include "base/text/present.h"
#include "child_storage.h"
#include "core/health/health.h"
#include "core/node.h"
#include "core/shop/webhook.h"
#include "settings/frame.h"
#include "settings/queue.h"

#define LINES 20 /* webhook endpoints */

/* What the database knows of the service. */
typedef struct {
    apr_array_header_t *nodes;
    mdl_queue_t queue;
    mdl_emails_tried_t emails;
    mdl_webhook_failing_t webhooks;
} health_t;

static apr_status_t health_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    health_t *health = arg;
    apr_status_t rv;

    if ((rv = mdl_node_list(db, p, &health->nodes)) != APR_SUCCESS ||
        (rv = mdl_queue_read(db, p, &health->queue)) != APR_SUCCESS ||
        (rv = mdl_emails_tried(db, p, &health->emails)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_webhook_failing(db, p, &health->webhooks);
}

static void health_add_nodes(mdl_json_t *data, const apr_array_header_t *nodes)
{
    mdl_json_t *list = mdl_json_add_array(data, "nodes");

    mdl_json_add_bool(data, "has_nodes", nodes->nelts > 0);
    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);
        mdl_json_t *to = mdl_json_add_object(list, NULL);
        int silent = node->silence >= MDL_NODE_LOST;

        mdl_json_add_string(to, "host", node->host);
        mdl_json_add_string(to, "pid_file", node->pid_file);
        mdl_json_add_string(to, "build", node->build);
        mdl_json_add_int(to, "silence", apr_time_sec(node->silence));
        mdl_json_add_bool(to, "silent", silent);
        mdl_present_date(to, "beat", silent ? apr_time_now() - node->silence : 0);
    }
}

/* Adds where files are stored. */
static void health_add_storage(mdl_json_t *data, mdl_visit_t *visit)
{
    const mdl_storage_config_t *config = &visit->service->settings->storage;
    const mdl_storage_t *storage = mdl_child_storage();
    mdl_places_ready_t ready;
    apr_int64_t left;

    ready = mdl_child_storage_places(visit->service, mdl_connection_db(visit->connection),
                                     visit->r->pool);
    mdl_visit_end(visit);
    mdl_json_add_string(data, "folder", config->folder);
    mdl_json_add_bool(data, "folder_ready", ready.folder);
    mdl_json_add_string(data, "objects", config->objects.url);
    mdl_json_add_bool(data, "objects_ready", ready.objects);
    if (storage != NULL && mdl_storage_free(storage, &left) == APR_SUCCESS) {
        mdl_present_size(data, "room_left", left);
        mdl_present_size(data, "room_reserve", config->reserve);
    }
}

static void health_add_emails(mdl_json_t *data, const mdl_emails_tried_t *tried)
{
    mdl_json_add_int(data, "emails_tried", tried->count);
    mdl_json_add_int(data, "emails_sent", tried->sent);
    mdl_json_add_bool(data, "emails_refused", mdl_health_mail_refused(tried));
    mdl_json_add_string(data, "last_error", tried->error);
    mdl_present_date(data, "newest", tried->newest_at);
}

static void health_add_webhooks(mdl_json_t *data, const apr_array_header_t *webhooks)
{
    mdl_json_t *list = mdl_json_add_array(data, "failing_webhooks");

    mdl_json_add_bool(data, "has_webhooks", webhooks->nelts > 0);
    mdl_json_add_bool(data, "more_webhooks", webhooks->nelts > LINES);
    for (int i = 0; i < webhooks->nelts && i < LINES; i++) {
        const mdl_webhook_t *each = APR_ARRAY_IDX(webhooks, i, const mdl_webhook_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_json_add_int(to, "of_shop", each->shop_id);
        mdl_json_add_string(to, "of_shop_name", each->shop_name);
        mdl_json_add_int(to, "webhook_id", each->id);
        mdl_json_add_string(to, "url", each->url);
        mdl_json_add_bool(to, "disabled", each->disabled_at != 0);
        mdl_present_date(to, "at",
                         each->disabled_at != 0 ? each->disabled_at : each->failing_since);
    }
}

static int health_show(mdl_visit_t *visit)
{
    health_t health = {.emails = {.limit = MDL_HEALTH_TRIED}, .webhooks = {.limit = LINES + 1}};
    apr_status_t rv = mdl_visit_read(visit, health_effect, &health);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    health_add_nodes(data, health.nodes);
    mdl_queue_add(data, &health.queue, 1);
    health_add_storage(data, visit);
    health_add_emails(data, &health.emails);
    health_add_webhooks(data, health.webhooks.found);
    return mdl_frame_send(visit, HTTP_OK, "health.html", data, NULL);
}

const mdl_page_t mdl_health_pages[] = {
    {"health", .sees = MDL_ROLE_OPERATOR, .get = health_show},
    {0},
};
