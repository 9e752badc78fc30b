#include "settings/queue.h"

#include "base/text/present.h"

static void queue_add_count(mdl_json_t *to, const char *name, apr_int64_t count)
{
    mdl_json_t *object = mdl_json_add_object(to, name);

    mdl_json_add_int(object, "jobs", count);
    mdl_json_add_bool(object, "more_jobs", count > MDL_QUEUE_MAX);
}

static int lane_is_idle(const mdl_queue_lane_t *lane)
{
    return lane->waiting + lane->later + lane->running == 0;
}

void mdl_queue_add(mdl_json_t *to, const mdl_queue_t *queue, int idle)
{
    mdl_json_t *lanes = mdl_json_add_array(to, "queue");

    for (int i = 0; i < (int)MDL_LANES; i++) {
        const mdl_queue_lane_t *lane = &queue->lanes[i];
        mdl_json_t *entry;

        if (!idle && lane_is_idle(lane)) {
            continue;
        }
        entry = mdl_json_add_object(lanes, NULL);

        mdl_json_add_string(entry, "lane", mdl_job_lane_names[i]);
        queue_add_count(entry, "waiting", lane->waiting);
        queue_add_count(entry, "later", lane->later);
        mdl_json_add_int(entry, "running", lane->running);
        mdl_present_date(entry, "oldest", lane->oldest);
    }
    mdl_json_add_bool(to, "has_queue", mdl_json_length(lanes) > 0);
}
