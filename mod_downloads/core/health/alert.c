#include "core/health/alert.h"

#include "core/node.h"

static apr_status_t finding_write(mdl_db_t *db, apr_pool_t *p, const mdl_alert_round_t *round,
                                  const mdl_alert_finding_t *finding)
{
    if (finding->words == NULL) {
        return mdl_db_exec(db, NULL, p,
                           MDL_Q(ALERT_FINDING_REMOVE, .name = finding->name, .host = round->host,
                                 .pid_file = round->pid_file));
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(ALERT_FINDING_ADD, .name = finding->name, .host = round->host,
                             .pid_file = round->pid_file, .of_node = finding->of_node,
                             .words = finding->words));
}

static apr_status_t alerts_change(mdl_db_t *db, apr_pool_t *p, const mdl_alert_round_t *round)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(ALERT_FINDINGS_FORGET, MDL_NODE_KEPT));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(ALERTS_RAISE, .host = round->host, .pid_file = round->pid_file));
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(ALERTS_SETTLE, .host = round->host, .pid_file = round->pid_file,
                               .silent = round->silent));
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(ALERTS_FORGET)) : rv;
}

static apr_status_t alerts_take(mdl_db_t *db, apr_pool_t *p, mdl_alert_round_t *round)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(ALERTS_TAKE, .host = round->host,
                                          .pid_file = round->pid_file, .lost = MDL_NODE_LOST));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_alert_t *alert = apr_array_push(round->due);

        MDL_READ(rows, alerts_take, alert, name, host, pid_file, failing, words, rounds,
                 command_told, email_told);
    }
    return rv;
}

apr_status_t mdl_alert_round(mdl_db_t *db, apr_pool_t *p, mdl_alert_round_t *round)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p, MDL_Q(ALERT_FINDINGS_SEEN, .host = round->host, .pid_file = round->pid_file));

    round->due = apr_array_make(p, 4, sizeof(mdl_alert_t));
    for (int i = 0; i < round->findings->nelts && rv == APR_SUCCESS; i++) {
        rv = finding_write(db, p, round, &APR_ARRAY_IDX(round->findings, i, mdl_alert_finding_t));
    }
    if (rv == APR_SUCCESS) {
        rv = alerts_change(db, p, round);
    }
    return rv == APR_SUCCESS ? alerts_take(db, p, round) : rv;
}

apr_status_t mdl_alert_told(mdl_db_t *db, apr_pool_t *p, const mdl_alert_t *alert)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(ALERT_TOLD, .command_told = alert->command_told,
                             .email_told = alert->email_told, .name = alert->name,
                             .host = alert->host, .pid_file = alert->pid_file));
}
