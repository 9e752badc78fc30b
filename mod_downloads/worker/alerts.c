#include "worker/alerts.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_thread_proc.h>

#include "base/log.h"
#include "base/text/utf8.h"
#include "core/health/tests.h"
#include "core/node.h"
#include "worker/alert_tell.h"

/* Rounds in a row after which a finding is believed, and that it is gone. */
#define ROUNDS_FAILED 2
#define ROUNDS_WELL   5
#define SELDOM        5 /* rounds between tests for which others pay, while they find nothing */
#define SILENT        apr_time_from_sec(900)
#define FINISH_MS     250

typedef enum { UNKNOWN, WELL, FAILED } state_t;

/* What one test has found, of late. */
typedef struct {
    int bad; /* rounds in a row */
    int good;
    state_t state;
    int written; /* whether the database knows that it is WELL */
    char words[4 * MDL_ALERT_WORDS_MAX + 1];
} found_t;

struct mdl_alerts_t {
    const mdl_service_t *service;
    apr_thread_t *thread;
    apr_pool_t *pool; /* of the thread */
    int stop_fd;
    int ended_fd;
    atomic_int stopping;
    /* For the thread alone: */
    mdl_alert_teller_t teller;
    int round;
    int database_rounds; /* of its alert, which the database can't keep */
    found_t database;
    found_t found[MDL_HEALTH_TESTS];
};

static int alerts_stopped(void *baton)
{
    return atomic_load(&((mdl_alerts_t *)baton)->stopping);
}

/* --- what is believed --- */

/* With its node's name, which every alert says. */
static void found_keep(found_t *found, const mdl_alerts_t *alerts, const char *message,
                       apr_pool_t *p)
{
    const char *words = apr_pstrcat(p, "At ", alerts->teller.host, ": ", message, NULL);

    apr_cpystrn(found->words, mdl_utf8_quoted(words, MDL_ALERT_WORDS_MAX, p), sizeof found->words);
}

static void found_note(found_t *found, const mdl_alerts_t *alerts, int good, const char *message,
                       apr_pool_t *p)
{
    found->good = good ? found->good + 1 : 0;
    found->bad = good ? 0 : found->bad + 1;
    if (found->bad >= ROUNDS_FAILED && found->state != FAILED) {
        found->state = FAILED;
        found_keep(found, alerts, message, p);
    } else if (found->good >= ROUNDS_WELL && found->state != WELL) {
        found->state = WELL;
        found->written = 0;
    }
}

static int test_is_due(const mdl_alerts_t *alerts, int i)
{
    return !mdl_health_tests[i].seldom || alerts->round % SELDOM == 0 ||
           alerts->found[i].state != WELL || alerts->found[i].bad > 0;
}

static void tests_run(mdl_alerts_t *alerts, const mdl_health_t *health)
{
    for (int i = 0; i < MDL_HEALTH_TESTS && !alerts_stopped(alerts); i++) {
        const char *message = "";

        if (test_is_due(alerts, i)) {
            int good = mdl_health_tests[i].run(health, &message);

            found_note(&alerts->found[i], alerts, good, message, health->p);
        }
    }
}

/* --- what is told --- */

/* A database that is away keeps nothing: memory that outlives restarts does instead. */
static void database_tell(mdl_alerts_t *alerts, apr_pool_t *p)
{
    atomic_int *told = alerts->service->database_told;
    found_t *database = &alerts->database;
    mdl_alert_t alert = {.name = MDL_HEALTH_DATABASE,
                         .host = alerts->teller.host,
                         .failing = database->state == FAILED,
                         .words = database->words,
                         .command_told = atomic_load(told) & MDL_TOLD_BY_COMMAND ? 1 : 0,
                         .email_told = atomic_load(told) & MDL_TOLD_BY_EMAIL ? 1 : 0};

    if (database->state == UNKNOWN) {
        return;
    }
    if (alert.command_told == alert.failing && alert.email_told == alert.failing) {
        alerts->database_rounds = 0;
        return;
    }
    alert.rounds = ++alerts->database_rounds;
    mdl_alert_tell(&alerts->teller, &alert, p);
    atomic_store(told, (alert.command_told ? MDL_TOLD_BY_COMMAND : 0) |
                           (alert.email_told ? MDL_TOLD_BY_EMAIL : 0));
}

MDL_EFFECT(mdl_alert_round, mdl_alert_round_t *)
MDL_EFFECT(mdl_alert_told, const mdl_alert_t *)

static apr_array_header_t *findings_of(mdl_alerts_t *alerts, apr_pool_t *p)
{
    apr_array_header_t *findings = apr_array_make(p, MDL_HEALTH_TESTS, sizeof(mdl_alert_finding_t));

    for (int i = 0; i < MDL_HEALTH_TESTS; i++) {
        const found_t *found = &alerts->found[i];

        if (found->state == FAILED || (found->state == WELL && !found->written)) {
            APR_ARRAY_PUSH(findings, mdl_alert_finding_t) = (mdl_alert_finding_t){
                .name = mdl_health_tests[i].name,
                .of_node = mdl_health_tests[i].of_node,
                .words = found->state == FAILED ? found->words : NULL};
        }
    }
    return findings;
}

static void due_tell(mdl_alerts_t *alerts, const apr_array_header_t *due, mdl_db_t *db,
                     apr_pool_t *p)
{
    for (int i = 0; i < due->nelts && !alerts_stopped(alerts); i++) {
        mdl_alert_t *alert = &APR_ARRAY_IDX(due, i, mdl_alert_t);

        mdl_alert_tell(&alerts->teller, alert, p);
        mdl_db_settle(db, mdl_alert_told_effect, alert, p);
    }
}

static void findings_tell(mdl_alerts_t *alerts, mdl_db_t *db, apr_pool_t *p)
{
    const mdl_service_t *service = alerts->service;
    apr_interval_time_t rest = 3 * service->settings->alert_interval;
    mdl_alert_round_t round = {.host = alerts->teller.host,
                               .pid_file = service->pid_file,
                               .findings = findings_of(alerts, p),
                               .silent = rest > SILENT ? rest : SILENT};

    if (mdl_db_settle(db, mdl_alert_round_effect, &round, p) != APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < MDL_HEALTH_TESTS; i++) {
        alerts->found[i].written = alerts->found[i].state == WELL;
    }
    due_tell(alerts, round.due, db, p);
}

/* --- the thread --- */

static void event_ring(int fd)
{
    const apr_uint64_t one = 1;

    /* Fails only if the counter is full, and then the descriptor is readable already. */
    if (write(fd, &one, sizeof one) < 0) {
        return;
    }
}

static void alerts_round(mdl_alerts_t *alerts, apr_pool_t *p)
{
    const char *message = "";
    mdl_health_t health = {.p = p,
                           .settings = alerts->service->settings,
                           .secret = alerts->service->secret,
                           .warnings = apr_array_make(p, 4, sizeof(const char *)),
                           .pid_file = alerts->service->pid_file};
    int good = mdl_health_connect(&health, &message);

    found_note(&alerts->database, alerts, good, message, p);
    if (health.db != NULL) {
        tests_run(alerts, &health);
    }
    if (!alerts_stopped(alerts)) {
        database_tell(alerts, p);
    }
    if (health.db != NULL && !alerts_stopped(alerts)) {
        findings_tell(alerts, health.db, p);
    }
    alerts->round++;
    mdl_log(MDL_LOG_DEBUG, 0, "MDL0394: the tests for alerts ran, round %d", alerts->round);
}

static void *APR_THREAD_FUNC alerts_run(apr_thread_t *thread, void *data)
{
    mdl_alerts_t *alerts = data;
    struct pollfd stop = {.fd = alerts->stop_fd, .events = POLLIN};
    int interval = (int)apr_time_as_msec(alerts->service->settings->alert_interval);
    apr_pool_t *p;

    (void)thread;
    apr_pool_create(&p, alerts->pool);
    apr_pool_tag(p, "mdl_alerts_round");
    while (poll(&stop, 1, interval) == 0 || !alerts_stopped(alerts)) {
        alerts_round(alerts, p);
        apr_pool_clear(p);
    }
    event_ring(alerts->ended_fd);
    return NULL;
}

apr_status_t mdl_alerts_start(mdl_alerts_t **made, const mdl_service_t *service, apr_pool_t *p)
{
    const mdl_settings_t *settings = service->settings;
    mdl_alerts_t *alerts;
    apr_status_t rv;

    *made = NULL;
    if (settings->alert_command == NULL && settings->alert_email == NULL) {
        return APR_SUCCESS;
    }
    alerts = apr_pcalloc(p, sizeof *alerts);
    alerts->service = service;
    alerts->teller = (mdl_alert_teller_t){
        .settings = settings, .host = mdl_node_host(p), .stopped = alerts_stopped, .baton = alerts};
    if ((alerts->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0 ||
        (alerts->ended_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0) {
        return errno;
    }
    /* The thread's own pool, so that it does not race with the control thread. */
    if ((rv = apr_pool_create_unmanaged_ex(&alerts->pool, NULL, NULL)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_tag(alerts->pool, "mdl_alerts");
    *made = alerts;
    return apr_thread_create(&alerts->thread, NULL, alerts_run, alerts, p);
}

void mdl_alerts_stop(mdl_alerts_t *alerts)
{
    if (alerts != NULL) {
        atomic_store(&alerts->stopping, 1);
        event_ring(alerts->stop_fd);
    }
}

void mdl_alerts_wait(const mdl_alerts_t *alerts)
{
    struct pollfd ended = {.events = POLLIN};

    if (alerts != NULL) {
        ended.fd = alerts->ended_fd;
        poll(&ended, 1, FINISH_MS);
    }
}
