#include "core/prune.h"

#include <apr_strings.h>

#define BEHIND_ALL_IDS "~" /* in byte order */

typedef struct {
    mdl_statement_t end;
    mdl_statement_t remove;
    int by_id; /* whether the key is text */
} table_t;

static const table_t tables[MDL_PRUNE_TABLES] = {
    [MDL_PRUNE_JOBS] = {MDL_Q_PRUNE_JOBS_END, MDL_Q_PRUNE_JOBS, 1},
    [MDL_PRUNE_UPLOADS] = {MDL_Q_PRUNE_UPLOADS_END, MDL_Q_PRUNE_UPLOADS, 1},
    [MDL_PRUNE_EMAILS] = {MDL_Q_PRUNE_EMAILS_END, MDL_Q_PRUNE_EMAILS, 0},
    [MDL_PRUNE_EVENTS] = {MDL_Q_PRUNE_EVENTS_END, MDL_Q_PRUNE_EVENTS, 0},
    [MDL_PRUNE_WEBHOOKS] = {MDL_Q_PRUNE_WEBHOOKS_END, MDL_Q_PRUNE_WEBHOOKS, 0},
    [MDL_PRUNE_DOWNLOADS] = {MDL_Q_PRUNE_DOWNLOADS_END, MDL_Q_PRUNE_DOWNLOADS, 0},
    [MDL_PRUNE_VISITS] = {MDL_Q_PRUNE_VISITS_END, MDL_Q_PRUNE_VISITS, 0},
    [MDL_PRUNE_AUDIT] = {MDL_Q_PRUNE_AUDIT_END, MDL_Q_PRUNE_AUDIT, 0},
    [MDL_PRUNE_ANSWERS] = {MDL_Q_PRUNE_ANSWERS_END, MDL_Q_PRUNE_ANSWERS, 0},
    [MDL_PRUNE_ADDRESSES] = {MDL_Q_PRUNE_ADDRESSES_END, MDL_Q_PRUNE_ADDRESSES, 0},
    [MDL_PRUNE_FINDS] = {MDL_Q_PRUNE_FINDS_END, MDL_Q_PRUNE_FINDS, 0},
};

/* Finds the end of a batch; at the end of the table, a key after all others. */
static apr_status_t prune_find_end(mdl_db_t *db, const mdl_prune_t *prune, mdl_prune_mark_t *end,
                                   int *more, apr_pool_t *p)
{
    const table_t *table = &tables[prune->table];
    const mdl_prune_mark_t *after = &prune->after;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p,
        table->by_id ? MDL_Q_AS(table->end, PRUNE_JOBS_END, .after = after->id,
                                .offset = MDL_PRUNE_BATCH - 1)
                     : MDL_Q_AS(table->end, PRUNE_EMAILS_END, .after = after->number,
                                .offset = MDL_PRUNE_BATCH - 1));

    *end = (mdl_prune_mark_t){.number = APR_INT64_MAX, .id = BEHIND_ALL_IDS};
    *more = 0;
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    *more = mdl_rows_int(row, 1) < prune->before;
    if (table->by_id) {
        apr_cpystrn(end->id, mdl_rows_text(row, 0), sizeof end->id);
    } else {
        end->number = mdl_rows_int(row, 0);
    }
    return APR_SUCCESS;
}

/* Some rows of the last batch may be too young, so the next pass begins with that batch. */
apr_status_t mdl_prune(mdl_db_t *db, apr_pool_t *p, mdl_prune_t *prune)
{
    const table_t *table = &tables[prune->table];
    mdl_prune_mark_t end;
    apr_status_t rv = prune_find_end(db, prune, &end, &prune->more, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    prune->next = prune->more ? end : prune->after;
    return mdl_db_exec(db, &prune->removed, p,
                       table->by_id
                           ? MDL_Q_AS(table->remove, PRUNE_JOBS, .after = prune->after.id,
                                      .end = end.id, .before = prune->before)
                           : MDL_Q_AS(table->remove, PRUNE_EMAILS, .after = prune->after.number,
                                      .end = end.number, .before = prune->before));
}
