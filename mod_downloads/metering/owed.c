#include "metering/owed.h"

#include <pthread.h>

#include "base/log.h"

typedef struct owed_t {
    struct owed_t *next;
    mdl_effect_fn *effect;
    void *arg;
    apr_pool_t *pool; /* has this, too */
} owed_t;

static struct {
    pthread_mutex_t mutex;
    owed_t *first;
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void owed_push(owed_t *owed)
{
    pthread_mutex_lock(&list.mutex);
    owed->next = list.first;
    list.first = owed;
    pthread_mutex_unlock(&list.mutex);
}

static owed_t *owed_take_all(void)
{
    owed_t *all;

    pthread_mutex_lock(&list.mutex);
    all = list.first;
    list.first = NULL;
    pthread_mutex_unlock(&list.mutex);
    return all;
}

void mdl_owed_add(mdl_effect_fn *effect, void *arg, apr_pool_t *pool)
{
    owed_t *owed = apr_palloc(pool, sizeof *owed);

    *owed = (owed_t){.effect = effect, .arg = arg, .pool = pool};
    owed_push(owed);
}

int mdl_owed_any(void)
{
    int any;

    pthread_mutex_lock(&list.mutex);
    any = list.first != NULL;
    pthread_mutex_unlock(&list.mutex);
    return any;
}

void mdl_owed_run(mdl_reconnect_t *database, apr_pool_t *p)
{
    owed_t *next;

    for (owed_t *owed = owed_take_all(); owed != NULL; owed = next) {
        apr_status_t rv = mdl_reconnect_settle(database, owed->effect, owed->arg, p);

        next = owed->next;
        if (mdl_db_unavailable(rv) || rv == MDL_DB_EFULL) {
            owed_push(owed);
            continue;
        }
        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0416: the database refuses to record the end of an upload's write, or the "
                    "visit of a page; an upload can be written again once this process has ended");
        }
        apr_pool_destroy(owed->pool);
    }
}
