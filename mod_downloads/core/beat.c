#include "core/beat.h"

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"

typedef struct {
    apr_int64_t beat;
    apr_time_t since;
} watched_t;

struct mdl_beats_t {
    apr_interval_time_t patience;
    apr_pool_t *pool;    /* of watched */
    apr_hash_t *watched; /* watched_t by id */
    apr_time_t looked_at;
};

static apr_pool_t *beats_pool(apr_pool_t *parent)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, parent);
    apr_pool_tag(pool, "mdl_beats");
    return pool;
}

mdl_beats_t *mdl_beats_watch(apr_interval_time_t patience, apr_pool_t *p)
{
    mdl_beats_t *beats = apr_pcalloc(p, sizeof *beats);

    beats->patience = patience;
    beats->pool = beats_pool(p);
    beats->watched = apr_hash_make(beats->pool);
    return beats;
}

static void beats_forget(mdl_beats_t *beats)
{
    apr_pool_clear(beats->pool);
    beats->watched = apr_hash_make(beats->pool);
}

/* Keeps what is known of the current beats, and forgets all others. */
static void beats_keep(mdl_beats_t *beats, const apr_array_header_t *now, apr_time_t at)
{
    apr_pool_t *pool = beats_pool(apr_pool_parent_get(beats->pool));
    apr_hash_t *watched = apr_hash_make(pool);

    for (int i = 0; i < now->nelts; i++) {
        const mdl_beat_t *beat = &APR_ARRAY_IDX(now, i, mdl_beat_t);
        const watched_t *before = apr_hash_get(beats->watched, beat->id, APR_HASH_KEY_STRING);
        watched_t *kept = apr_palloc(pool, sizeof *kept);

        kept->beat = beat->beat;
        kept->since = before != NULL && before->beat == beat->beat ? before->since : at;
        apr_hash_set(watched, apr_pstrdup(pool, beat->id), APR_HASH_KEY_STRING, kept);
    }
    apr_pool_destroy(beats->pool);
    beats->pool = pool;
    beats->watched = watched;
}

apr_array_header_t *mdl_beats_look(mdl_beats_t *beats, const apr_array_header_t *now, apr_pool_t *p)
{
    apr_array_header_t *lost = apr_array_make(p, 0, sizeof(mdl_beat_t));
    apr_time_t at = mdl_clock_monotonic();

    if (now == NULL || at - beats->looked_at > beats->patience) {
        beats_forget(beats);
    }
    beats->looked_at = at;
    if (now == NULL) {
        return lost;
    }
    beats_keep(beats, now, at);
    for (int i = 0; i < now->nelts; i++) {
        const mdl_beat_t *beat = &APR_ARRAY_IDX(now, i, mdl_beat_t);
        const watched_t *watched = apr_hash_get(beats->watched, beat->id, APR_HASH_KEY_STRING);

        if (at - watched->since > beats->patience) {
            APR_ARRAY_PUSH(lost, mdl_beat_t) = *beat;
        }
    }
    return lost;
}

apr_status_t mdl_beats_read(mdl_db_t *db, mdl_statement_t statement, apr_array_header_t **beats,
                            apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q_AS(statement, JOBS_LEASED));

    *beats = apr_array_make(p, 16, sizeof(mdl_beat_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*beats, mdl_beat_t) = (mdl_beat_t){
            .id = MDL_TEXT(rows, jobs_leased, id), .beat = MDL_INT(rows, jobs_leased, updated_at)};
    }
    return rv;
}
