#include "core/catalog/stray_object.h"

#include "base/text/json.h"
#include "base/ulid.h"

#define HOUR apr_time_from_sec(3600)
#define DAY  (24 * HOUR)

apr_status_t mdl_stray_begin(mdl_db_t *db, const char *owner, const char **key, apr_pool_t *p)
{
    *key = mdl_ulid(MDL_STRAY_PREFIX, p);
    return mdl_db_exec(db, NULL, p, MDL_Q(STRAY_BEGIN, .key = *key, .owner = owner, .rest = HOUR));
}

apr_status_t mdl_stray_postpone(mdl_db_t *db, const char *key, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STRAY_POSTPONE, .rest = HOUR, .key = key));
}

apr_status_t mdl_stray_adopt(mdl_db_t *db, const char *key, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(STRAY_ADOPT, key));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(db, &row, p, MDL_Q(STRAY_REMOVED, key));
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv == APR_SUCCESS ? APR_EINCOMPLETE : rv;
}

apr_status_t mdl_stray_drop(mdl_db_t *db, const char *key, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STRAY_DROP, key));
}

apr_status_t mdl_stray_leave(mdl_db_t *db, const char *key, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STRAY_LEAVE, .key = key, .rest = DAY));
}

apr_status_t mdl_stray_take(mdl_db_t *db, apr_pool_t *p, mdl_stray_take_t *take)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(STRAY_TAKE, .again = take->now + HOUR, .now = take->now, .limit = take->limit));

    take->seen = 0;
    take->strays = apr_array_make(p, 16, sizeof(mdl_stray_t));
    for (; rv == APR_SUCCESS && mdl_rows_next(rows); take->seen++) {
        if (!MDL_NULL(rows, stray_take, removed_at)) {
            mdl_stray_t *stray = &APR_ARRAY_PUSH(take->strays, mdl_stray_t);

            MDL_READ(rows, stray_take, stray, key, owner, removed_at);
        }
    }
    return rv;
}

apr_status_t mdl_stray_removed(mdl_db_t *db, apr_pool_t *p, const mdl_stray_removed_t *removed)
{
    const mdl_stray_t *stray = &removed->stray;

    return removed->now - stray->removed_at >= DAY
               ? mdl_db_exec(db, NULL, p, MDL_Q(STRAY_END, stray->key))
               : mdl_db_exec(
                     db, NULL, p,
                     MDL_Q(STRAY_AGAIN, .due_at = stray->removed_at + DAY, .key = stray->key));
}

apr_status_t mdl_stray_unknown(mdl_db_t *db, apr_pool_t *p, mdl_stray_unknown_t *find)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(OBJECTS_UNKNOWN, mdl_json_texts(find->keys, p)));

    find->unknown = apr_array_make(p, 4, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(find->unknown, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}
