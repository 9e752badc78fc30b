#include "ctl/feed.h"

#include <stddef.h>

#include "core/shop/event.h"

typedef struct {
    const char *feed;
} feed_t;

static const mdl_field_t fields[] = {
    {"feed", MDL_FIELD_TEXT, offsetof(feed_t, feed), 1, NULL},
    {0},
};

static apr_status_t feed_renew_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_event_renew_feed(db, p, &((feed_t *)arg)->feed);
}

int mdl_ctl_feed_renew(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    feed_t feed;
    int failed = mdl_ctl_write(ctl, feed_renew_effect, &feed, &problem);

    if (!failed) {
        mdl_printer_record(ctl->output, fields, &feed);
    }
    return failed;
}
