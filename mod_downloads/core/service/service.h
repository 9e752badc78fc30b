/*
 * What all processes of a running service share. httpd's parent creates it; its children and the
 * background process inherit it.
 */
#ifndef MDL_CORE_SERVICE_SERVICE_H
#define MDL_CORE_SERVICE_SERVICE_H

#include <stdatomic.h>

#include "base/crypto.h"
#include "core/job_begun.h"
#include "core/order/fraud.h"
#include "core/readiness.h"
#include "core/shop/key_cache.h"
#include "core/shop/rate_limit.h"
#include "core/settings/settings.h"

typedef struct {
    const mdl_settings_t *settings;
    const mdl_secret_t *secret;
    mdl_key_cache_t *key_cache;
    mdl_rate_limit_t *rate_limit;
    const mdl_fraud_rules_t *fraud;
    mdl_begun_t *begun; /* of the background process */
    mdl_readiness_t *readiness;
    const char *pid_file; /* httpd's */
    int wake_fd;          /* eventfd, see mdl_service_wake */
    /* By what the operator was told that the database is away, a sum of the following.  It outlives
       restarts of httpd. */
    atomic_int *database_told;
} mdl_service_t;

#define MDL_TOLD_BY_COMMAND 1
#define MDL_TOLD_BY_EMAIL   2

/** Reads the secret and the lists of domains, and creates the shared memory; all of it lives as
    long as p.  On an error, *why is a sentence. */
apr_status_t mdl_service_open(mdl_service_t **service, const mdl_settings_t *settings,
                              const char *pid_file, int wake_fd, const char **why, apr_pool_t *p);

/** Wakes this node's background process after a commit, unless it looks for jobs anyway before the
    first of these is due.  Never blocks. */
void mdl_service_wake(const mdl_service_t *service, mdl_db_due_t due);

/* The process reads a sum of these from wake_fd. */
#define MDL_WAKE_EVENT ((apr_uint64_t)1)
#define MDL_WAKE_JOB   ((apr_uint64_t)1 << 32)

#endif
