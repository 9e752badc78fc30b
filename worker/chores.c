#include "worker/chores.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "core/idempotency.h"

#define PRUNE_BATCHES 20

static apr_status_t touch_all(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t *used = arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < used->nelts && rv == APR_SUCCESS; i++) {
        rv = mdl_key_touch(db, p, &APR_ARRAY_IDX(used, i, mdl_key_touch_t));
    }
    return rv;
}

void mdl_chores_report_keys(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p)
{
    apr_array_header_t *used = apr_array_make(p, 16, sizeof(mdl_key_touch_t));
    char id[MDL_KEY_ID_LENGTH + 1];
    apr_time_t used_at;
    int index = 0;

    while (mdl_key_cache_next_used(service->key_cache, &index, id, &used_at)) {
        APR_ARRAY_PUSH(used, mdl_key_touch_t) = (mdl_key_touch_t){.id = apr_pstrdup(p, id),
                                                                  .used_at = used_at};
    }
    if (used->nelts > 0) {
        mdl_worker_db_write(database, touch_all, used, p);
    }
}

int mdl_chores_prune(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p)
{
    mdl_idempotency_prune_t prune = {.before = apr_time_now() -
                                               service->settings->idempotency_retention};

    for (int i = 0; i < PRUNE_BATCHES; i++) {
        if (mdl_worker_db_write(database, mdl_idempotency_prune, &prune, p) != APR_SUCCESS ||
            prune.removed == 0) {
            return 0;
        }
    }
    return 1;
}
