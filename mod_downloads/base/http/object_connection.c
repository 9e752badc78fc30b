#include "base/http/object_connection.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

#define IDLE apr_time_from_sec(60)

struct mdl_object_connections_t {
    pthread_mutex_t mutex;
    mdl_object_connection_t *idle; /* the one that was used last comes first */
};

static void connection_free(mdl_object_connection_t *connection)
{
    curl_easy_cleanup(connection->easy);
    curl_multi_cleanup(connection->multi);
    free(connection);
}

static void connections_free(mdl_object_connection_t *connection)
{
    while (connection != NULL) {
        mdl_object_connection_t *next = connection->next;

        connection_free(connection);
        connection = next;
    }
}

static apr_status_t connections_cleanup(void *data)
{
    mdl_object_connections_t *connections = data;

    connections_free(connections->idle);
    connections->idle = NULL;
    return APR_SUCCESS;
}

mdl_object_connections_t *mdl_object_connections_make(apr_pool_t *p)
{
    mdl_object_connections_t *connections = apr_pcalloc(p, sizeof *connections);

    pthread_mutex_init(&connections->mutex, NULL);
    apr_pool_cleanup_register(p, connections, connections_cleanup, apr_pool_cleanup_null);
    return connections;
}

static mdl_object_connection_t *connection_make(void)
{
    mdl_object_connection_t *connection = calloc(1, sizeof *connection);

    if (connection == NULL) {
        return NULL;
    }
    connection->easy = curl_easy_init();
    connection->multi = curl_multi_init();
    if (connection->easy == NULL || connection->multi == NULL) {
        connection_free(connection);
        return NULL;
    }
    return connection;
}

mdl_object_connection_t *mdl_object_connection_take(mdl_object_connections_t *connections)
{
    mdl_object_connection_t *connection;

    pthread_mutex_lock(&connections->mutex);
    connection = connections->idle;
    if (connection != NULL) {
        connections->idle = connection->next;
    }
    pthread_mutex_unlock(&connections->mutex);
    return connection != NULL ? connection : connection_make();
}

void mdl_object_connection_give(mdl_object_connections_t *connections,
                                mdl_object_connection_t *connection)
{
    mdl_object_connection_t **link = &connections->idle, *old;
    apr_time_t now = mdl_clock_monotonic();

    curl_easy_reset(connection->easy);
    connection->idle_since = now;
    pthread_mutex_lock(&connections->mutex);
    connection->next = connections->idle;
    connections->idle = connection;
    /* The list is by age, so all behind the first old one are old. */
    while (*link != NULL && now - (*link)->idle_since < IDLE) {
        link = &(*link)->next;
    }
    old = *link;
    *link = NULL;
    pthread_mutex_unlock(&connections->mutex);
    connections_free(old);
}
