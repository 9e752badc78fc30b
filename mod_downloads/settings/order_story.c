#include "settings/order_story.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/text/present.h"
#include "core/order/history.h"
#include "core/order/timeline.h"
#include "settings/frame.h"

/* The actions of the timeline that the template has words for. */
static const char *const actions[] = {"assigned",
                                      "revoked",
                                      "restored",
                                      "downloads_granted",
                                      "email_resent",
                                      "link_rotated",
                                      "approved",
                                      "rejected",
                                      "license_keys_assigned",
                                      "fraud_held",
                                      "fraud_passed",
                                      "quantity_changed",
                                      "address_changed",
                                      "declared",
                                      "help_asked",
                                      "help_refused",
                                      NULL};

/* An entry of the timeline, or what became of an email. */
typedef struct {
    apr_time_t at;
    const mdl_timeline_entry_t *entry; /* or NULL */
    const mdl_email_view_t *email;
    mdl_email_status_t became;
} event_t;

static int event_compare(const void *left, const void *right)
{
    const event_t *a = left, *b = right;

    if (a->at != b->at) {
        return a->at < b->at ? 1 : -1;
    }
    if (a->entry != NULL && b->entry != NULL) {
        return a->entry->id < b->entry->id ? 1 : -1;
    }
    return (a->entry != NULL) - (b->entry != NULL);
}

static void story_push_email(apr_array_header_t *events, const mdl_email_view_t *email)
{
    const mdl_email_state_t *state = &email->state;

    if (state->status == MDL_EMAIL_BOUNCED) {
        APR_ARRAY_PUSH(events, event_t) = (event_t){state->bounced_at, NULL, email,
                                                    MDL_EMAIL_BOUNCED};
    }
    APR_ARRAY_PUSH(events, event_t) = (event_t){
        state->sent_at != 0 ? state->sent_at : email->created_at, NULL, email,
        state->status == MDL_EMAIL_BOUNCED ? MDL_EMAIL_SENT : state->status};
}

static void story_add_email(mdl_json_t *to, const event_t *event)
{
    const mdl_email_state_t *state = &event->email->state;

    mdl_json_add_string(to, "email_event", mdl_email_status_names[event->became]);
    mdl_json_add_string(to, "to", state->to);
    mdl_json_add_string(to, "last_error",
                        event->became != MDL_EMAIL_SENT ? state->last_error : NULL);
}

static void story_add_entry(mdl_json_t *to, const mdl_timeline_entry_t *entry)
{
    mdl_frame_add_choice(mdl_json_add_object(to, "action"), actions,
                         mdl_names_find(actions, entry->action));
    mdl_json_add_bool(to, "partly",
                      entry->assignment_ids != NULL && strcmp(entry->action, "assigned") != 0);
    mdl_json_add_string(to, "by_user", entry->user);
    mdl_json_add_string(to, "by_key", entry->key_name != NULL ? entry->key_name : entry->key_id);
    mdl_json_add_string(to, "reason", entry->reason);
}

void mdl_order_story_add(mdl_json_t *to, const mdl_order_t *order, const apr_array_header_t *emails,
                         apr_pool_t *p)
{
    apr_array_header_t *events = apr_array_make(p, 16, sizeof(event_t));
    mdl_json_t *array = mdl_json_add_array(to, "events");

    for (int i = 0; i < order->timeline->nelts; i++) {
        const mdl_timeline_entry_t *entry = APR_ARRAY_IDX(order->timeline, i,
                                                          const mdl_timeline_entry_t *);

        APR_ARRAY_PUSH(events, event_t) = (event_t){entry->created_at, entry, NULL,
                                                    MDL_EMAIL_NOT_REQUESTED};
    }
    for (int i = 0; i < emails->nelts; i++) {
        story_push_email(events, APR_ARRAY_IDX(emails, i, const mdl_email_view_t *));
    }
    qsort(events->elts, (size_t)events->nelts, sizeof(event_t), event_compare);
    for (int i = 0; i < events->nelts; i++) {
        const event_t *each = &APR_ARRAY_IDX(events, i, event_t);
        mdl_json_t *event = mdl_json_add_object(array, NULL);

        if (each->entry != NULL) {
            story_add_entry(event, each->entry);
        } else {
            story_add_email(event, each);
        }
        mdl_present_date(event, "at", each->at);
    }
}
