/*
 * Connections to an object store that threads take and give back.  The one that was used last is
 * taken first, so that those which are not needed grow old, and are closed.  Private to base/http.
 */
#ifndef MDL_BASE_HTTP_OBJECT_CONNECTION_H
#define MDL_BASE_HTTP_OBJECT_CONNECTION_H

#include <apr_pools.h>
#include <apr_time.h>
#include <curl/curl.h>

typedef struct mdl_object_connection_t mdl_object_connection_t;

/** One libcurl handle and its connection; belongs to the thread that has taken it. */
struct mdl_object_connection_t {
    CURLM *multi; /* keeps the connection between requests */
    CURL *easy;   /* reset */
    apr_time_t idle_since;
    mdl_object_connection_t *next;
};

typedef struct mdl_object_connections_t mdl_object_connections_t;

/** An empty list of idle connections, which are closed when p is destroyed. */
mdl_object_connections_t *mdl_object_connections_make(apr_pool_t *p);

/** Takes a connection, or makes one; NULL without memory. */
mdl_object_connection_t *mdl_object_connection_take(mdl_object_connections_t *connections);

/** Gives a connection back, whose handle is in no multi handle any more.  Closes those that were
    idle for a minute. */
void mdl_object_connection_give(mdl_object_connections_t *connections,
                                mdl_object_connection_t *connection);

#endif
