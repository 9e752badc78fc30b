/*
 * The client for outgoing HTTP requests: libcurl's multi interface in one thread, guarded against
 * server-side request forgery.  The host is checked on the parsed URL, the address on every
 * connection.  base/http/fetch.h and base/http/post.h begin requests; transfer.c implements this
 * header.
 */
#ifndef MDL_BASE_HTTP_CLIENT_H
#define MDL_BASE_HTTP_CLIENT_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/http/policy.h"

/** One multi handle; belongs to one thread. */
typedef struct mdl_http_client_t mdl_http_client_t;

/**
 * Initializes libcurl.  Call it once in the process before any thread is started; the clean-up is
 * registered with p.  Returns APR_EGENERAL when libcurl can't be initialized.
 */
apr_status_t mdl_http_global_init(apr_pool_t *p);

/**
 * policy is kept, not copied.  p is the thread's own; when it is destroyed, running requests end
 * without their done().  The process must ignore SIGPIPE.  Returns APR_ENOMEM without memory.
 */
apr_status_t mdl_http_client_create(mdl_http_client_t **client, const mdl_http_policy_t *policy,
                                    apr_pool_t *p);

/** Waits for work up to timeout_ms, or until mdl_http_client_wake, and performs it. */
void mdl_http_client_run(mdl_http_client_t *client, int timeout_ms);

/** Ends the wait of mdl_http_client_run.  Any thread may call it. */
void mdl_http_client_wake(mdl_http_client_t *client);

#endif
