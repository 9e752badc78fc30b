#include "worker/bounces.h"

#include <apr_strings.h>

#include "base/clock.h"
#include "base/mail/bounce_report.h"
#include "base/log.h"
#include "base/mail/mailbox.h"
#include "core/metrics.h"
#include "core/order/bounce.h"

#define BATCH          20
#define PRUNE_BATCH    500
#define COMPLAIN_AFTER apr_time_from_sec(60)

struct mdl_bounces_t {
    const mdl_service_t *service;
    mdl_reconnect_t *database;
    mdl_mailbox_t *box;
    apr_time_t complained_at; /* 0: never */
};

mdl_bounces_t *mdl_bounces_create(const mdl_service_t *service, mdl_reconnect_t *database,
                                  apr_pool_t *p)
{
    mdl_bounces_t *bounces;

    if (service->settings->mail_bounces == NULL) {
        return NULL;
    }
    bounces = apr_pcalloc(p, sizeof *bounces);
    bounces->service = service;
    bounces->database = database;
    bounces->box = mdl_mailbox_create(service->settings->mail_bounces, p);
    return bounces;
}

/* The id of the email that a message is about; 0 if it is not ours. */
static apr_int64_t email_of(const mdl_bounces_t *bounces, const mdl_bounce_report_t *report)
{
    apr_int64_t id = 0;

    for (int i = 0; i < report->addresses->nelts && id == 0; i++) {
        id = mdl_bounce_email_id(bounces->service->secret,
                                 APR_ARRAY_IDX(report->addresses, i, const char *));
    }
    return id;
}

MDL_EFFECT(mdl_bounce_note, const mdl_bounce_t *)
MDL_EFFECT(mdl_bounce_note_news, mdl_bounce_news_t *)

/* A message that is about no email of an order. */
static apr_status_t bounces_take_news(const mdl_bounces_t *bounces,
                                      const mdl_bounce_report_t *report, apr_pool_t *p)
{
    mdl_bounce_news_t news = {.secret = bounces->service->secret, .addresses = report->addresses};
    apr_status_t rv = APR_SUCCESS;

    if (report->reason != NULL) {
        rv = mdl_reconnect_write(bounces->database, mdl_bounce_note_news_effect, &news, p);
    }
    if (rv == APR_SUCCESS && news.order_id == 0) {
        mdl_log(MDL_LOG_INFO, 0, "MDL0341: a returned message is about no email of ours");
    } else if (rv == APR_SUCCESS) {
        mdl_metric_add(&mdl_metrics->emails[MDL_MAILS_BOUNCED], 1);
        mdl_log(MDL_LOG_NOTICE, 0,
                "MDL0395: an email about new versions to the buyer of order %" APR_INT64_T_FMT
                " came back, and no more are sent there: %s",
                news.order_id, report->reason);
    }
    return rv;
}

static apr_status_t bounces_take(void *baton, const char *message, apr_size_t length, apr_pool_t *p)
{
    const mdl_bounces_t *bounces = baton;
    mdl_bounce_t bounce;
    mdl_bounce_report_t report;
    apr_status_t rv;

    mdl_bounce_report_read(&report, message, length, p);
    bounce.email_id = email_of(bounces, &report);
    bounce.reason = report.reason;
    if (bounce.email_id == 0) {
        return bounces_take_news(bounces, &report, p);
    }
    if (bounce.reason == NULL) {
        mdl_log(MDL_LOG_INFO, 0,
                "MDL0342: a message about email %" APR_INT64_T_FMT " tells of no failure",
                bounce.email_id);
        return APR_SUCCESS;
    }
    rv = mdl_reconnect_write(bounces->database, mdl_bounce_note_effect, &bounce, p);
    if (rv == APR_SUCCESS) {
        mdl_metric_add(&mdl_metrics->emails[MDL_MAILS_BOUNCED], 1);
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0343: email %" APR_INT64_T_FMT " came back: %s",
                bounce.email_id, bounce.reason);
    }
    return rv;
}

int mdl_bounces_prune(const mdl_bounces_t *bounces, apr_time_t before, apr_pool_t *p)
{
    int more;

    mdl_mailbox_clean(bounces->box, before, PRUNE_BATCH, &more, p);
    return more;
}

int mdl_bounces_read(mdl_bounces_t *bounces, apr_pool_t *p)
{
    apr_time_t now = mdl_clock_monotonic();
    const char *why;
    int more;

    mdl_mailbox_read(bounces->box, BATCH, bounces_take, bounces, &more, &why, p);
    if (why != NULL &&
        (bounces->complained_at == 0 || now - bounces->complained_at > COMPLAIN_AFTER)) {
        bounces->complained_at = now;
        mdl_log(MDL_LOG_ERR, 0, "MDL0344: DownloadsMailBounces: %s", why);
    }
    return more;
}
