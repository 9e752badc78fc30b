/*
 * The object store of a run (tools/with-objects), and a bucket of one's own in it.
 */
#ifndef MDL_T_UNIT_STORE_H
#define MDL_T_UNIT_STORE_H

#include <stdlib.h>
#include <unistd.h>

#include "base/http/object_store.h"
#include "base/http/sign.h"
#include "t/unit/program.h"
#include "t/unit/tap.h"

static const char *store_origin, *store_bucket;
static mdl_object_config_t store_config;

/* Reads where the store is, and makes the bucket. */
static inline int store_find(const char *params, apr_pool_t *p)
{
    char *rest = apr_pstrdup(p, params);

    store_origin = apr_strtok(rest, " \n", &rest);
    store_config.access_key = apr_strtok(NULL, " \n", &rest);
    store_config.secret_key = apr_strtok(NULL, " \n", &rest);
    store_config.region = apr_strtok(NULL, " \n", &rest);
    store_config.timeout_s = 30;
    store_bucket = apr_psprintf(p, "unit-%ld-%ld", (long)getpid(),
                                (long)apr_time_sec(apr_time_now()));
    store_config.url = apr_pstrcat(p, store_origin, "/", store_bucket, "/pre/fix", NULL);
    /* curl takes a key with a colon from a URL alone. */
    return strcmp(output_of(apr_psprintf(p,
                                         "curl -sS -o /dev/null -w '%%{http_code}' -X PUT "
                                         "--aws-sigv4 aws:amz:%s:s3 -H 'x-amz-content-sha256: %s' "
                                         "'http://%s:%s@%s/%s'",
                                         store_config.region, MDL_SIGN_NO_BODY,
                                         mdl_sign_encode_path(store_config.access_key, p),
                                         store_config.secret_key, store_origin + strlen("http://"),
                                         store_bucket),
                            p),
                  "200") == 0;
}

/** False, and all checks count as skipped, if the run has no store. */
static inline int store_begin(apr_pool_t *p)
{
    const char *params = getenv("MDL_TEST_S3");

    if (params == NULL) {
        printf("1..0 # SKIP MDL_TEST_S3 is not set (tools/with-objects)\n");
        return 0;
    }
    if (!store_find(params, p)) {
        printf("Bail out! no bucket at MDL_TEST_S3\n");
        exit(2);
    }
    return 1;
}

/** Whether a region that is not the store's is no mistake, as for Ceph. */
static inline int store_takes_any_region(void)
{
    const char *name = getenv("MDL_STORE");

    return name != NULL && strcmp(name, "radosgw") == 0;
}

/** The store, by store_config but for the members that are set in other. */
static inline mdl_object_store_t *store_with(mdl_object_config_t other, apr_pool_t *p)
{
    mdl_object_config_t config = store_config;
    mdl_object_store_t *made;
    const char *why;

    config.url = other.url != NULL ? other.url : config.url;
    config.region = other.region != NULL ? other.region : config.region;
    config.secret_key = other.secret_key != NULL ? other.secret_key : config.secret_key;
    if (mdl_object_store_create(&made, &config, &why, p) != APR_SUCCESS) {
        printf("Bail out! %s\n", why);
        exit(2);
    }
    return made;
}

#endif
