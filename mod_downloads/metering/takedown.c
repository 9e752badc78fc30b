#include "metering/takedown.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <httpd.h>

static struct {
    _Atomic int watchers;
    pthread_mutex_t mutex;
    apr_int64_t *shop_ids;
    int count;
    apr_time_t asked_at;
} takedown = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void mdl_takedown_watch(void)
{
    atomic_fetch_add(&takedown.watchers, 1);
}

void mdl_takedown_unwatch(void)
{
    atomic_fetch_sub(&takedown.watchers, 1);
}

int mdl_takedown_watched(void)
{
    return atomic_load(&takedown.watchers) > 0;
}

void mdl_takedown_set(const apr_array_header_t *shop_ids, apr_time_t asked_at)
{
    size_t size = (size_t)shop_ids->nelts * sizeof(apr_int64_t);

    pthread_mutex_lock(&takedown.mutex);
    takedown.count = shop_ids->nelts;
    takedown.asked_at = asked_at;
    if (size > 0) {
        takedown.shop_ids = ap_realloc(takedown.shop_ids, size);
        memcpy(takedown.shop_ids, shop_ids->elts, size);
    }
    pthread_mutex_unlock(&takedown.mutex);
}

int mdl_takedown_covers(apr_int64_t shop_id, apr_time_t since)
{
    int found = 0;

    pthread_mutex_lock(&takedown.mutex);
    for (int i = 0; takedown.asked_at > since && i < takedown.count && !found; i++) {
        found = takedown.shop_ids[i] == shop_id;
    }
    pthread_mutex_unlock(&takedown.mutex);
    return found;
}
