#include "core/health/objects.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/client.h"
#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "base/http/object_reader.h"
#include "base/ulid.h"
#include "core/catalog/storage_identity.h"
#include "core/catalog/stray_object.h"

#define TEXT       "written by downloadsctl check"
#define PATIENCE   apr_time_from_sec(5)
#define CLOCK_MOST apr_time_from_sec(300) /* stores refuse some 15 minutes */

/* An object that is made for the check. */
typedef struct {
    mdl_object_store_t *store;
    mdl_object_call_t call;
    mdl_object_body_t body;
    const char *key;
    const char *upload; /* NULL: none */
    apr_pool_t *p;
} trial_t;

static apr_status_t trial_put(trial_t *trial)
{
    return mdl_object_put(trial->store, trial->key, &trial->body, &trial->call, trial->p);
}

static apr_status_t trial_read(trial_t *trial)
{
    mdl_object_reader_t *reader;
    const char *bytes;
    apr_size_t length;
    apr_status_t rv = mdl_object_reader_open(&reader, trial->store, trial->key, sizeof TEXT - 1, 8,
                                             2, &trial->call, trial->p);

    if (rv == APR_SUCCESS &&
        (rv = mdl_object_reader_take(reader, &bytes, &length)) == APR_SUCCESS) {
        rv = length == 2 && memcmp(bytes, &TEXT[8], 2) == 0 ? APR_SUCCESS : MDL_OBJECT_EBROKEN;
    }
    return rv;
}

static apr_status_t trial_list(trial_t *trial)
{
    const char *cursor = NULL;
    apr_array_header_t *entries;

    return mdl_object_list(trial->store, trial->key, &cursor, &entries, &trial->call, trial->p);
}

static apr_status_t trial_create(trial_t *trial)
{
    return mdl_object_parts_create(trial->store, trial->key, &trial->upload, &trial->call,
                                   trial->p);
}

static apr_status_t trial_part(trial_t *trial)
{
    const char *etag;

    return mdl_object_parts_put(trial->store, trial->key, trial->upload, 1, &trial->body, &etag,
                                &trial->call, trial->p);
}

static apr_status_t trial_parts(trial_t *trial)
{
    apr_array_header_t *parts;

    return mdl_object_parts_list(trial->store, trial->key, trial->upload, &parts, &trial->call,
                                 trial->p);
}

static apr_status_t trial_uploads(trial_t *trial)
{
    const char *cursor = NULL;
    apr_array_header_t *uploads;

    return mdl_object_uploads_list(trial->store, trial->key, &cursor, &uploads, &trial->call,
                                   trial->p);
}

static apr_status_t trial_abort(trial_t *trial)
{
    return mdl_object_parts_abort(trial->store, trial->key, trial->upload, &trial->call, trial->p);
}

static apr_status_t trial_delete(trial_t *trial)
{
    return mdl_object_delete(trial->store, trial->key, &trial->call, trial->p);
}

/* By the actions that the policy of a key names. */
static const struct {
    apr_status_t (*run)(trial_t *trial);
    const char *failed;
    const char *action;
} steps[] = {
    {trial_put, "No object can be written", "s3:PutObject"},
    {trial_read, "No part of an object can be read", "s3:GetObject"},
    {trial_list, "Objects can't be listed", "s3:ListBucket"},
    {trial_create, "No object can be written in parts", "s3:PutObject"},
    {trial_part, "No part of an object can be written", "s3:PutObject"},
    {trial_parts, "Parts can't be listed", "s3:ListMultipartUploadParts"},
    {trial_uploads, "Uploads can't be listed", "s3:ListBucketMultipartUploads"},
    {trial_abort, "No upload can be aborted", "s3:AbortMultipartUpload"},
    {trial_delete, "No object can be removed", "s3:DeleteObject"},
};

static const char *step_fault(const mdl_health_t *health, apr_size_t step, const trial_t *trial,
                              apr_status_t rv)
{
    const char *why = trial->call.why != NULL ? trial->call.why
                                              : "what was read is not what was written.";
    const char *remedy = rv == MDL_OBJECT_EAWAY
                             ? "  Correct DownloadsObjectStore, or start the store."
                             : "";

    if (strstr(why, "AccessDenied") != NULL) {
        remedy = apr_psprintf(health->p, "  Let the key's policy allow %s.", steps[step].action);
    }
    return apr_psprintf(health->p, "%s: %s%s", steps[step].failed, why, remedy);
}

static void clock_warn(const mdl_health_t *health, const trial_t *trial)
{
    apr_interval_time_t ahead = apr_time_now() - trial->call.date;

    if (trial->call.date > 0 && (ahead > CLOCK_MOST || ahead < -CLOCK_MOST)) {
        mdl_health_warn(
            health, apr_psprintf(health->p,
                                 "The clock of this machine is %d seconds %s that of the object "
                                 "store, which refuses requests when it is 900: set both by "
                                 "NTP.",
                                 (int)apr_time_sec(ahead < 0 ? -ahead : ahead),
                                 ahead > 0 ? "ahead of" : "behind"));
    }
}

static void lifecycle_warn(const mdl_health_t *health, trial_t *trial)
{
    int expire;

    if (mdl_object_uploads_expire(trial->store, &expire, &trial->call, trial->p) == APR_SUCCESS &&
        !expire) {
        mdl_health_warn(health,
                        "The bucket has no lifecycle rule for unfinished multipart uploads, which "
                        "cost storage: add one that aborts them 7 days after they began "
                        "(docs/operate.md, An object store).");
    }
}

/* Whether the bucket belongs to the database. */
static int bucket_belongs(const mdl_health_t *health, const char **message)
{
    const mdl_object_config_t *bucket = &health->settings->storage.objects;
    const char *why = "The database does not say which bucket belongs with it.";

    if (health->db == NULL ||
        mdl_storage_bucket_belongs(health->db, bucket, &why, health->p) == APR_SUCCESS) {
        return 1;
    }
    *message = why;
    return 0;
}

static int trial_run(const mdl_health_t *health, trial_t *trial, const char **message)
{
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        trial->call.why = NULL;
        if ((rv = steps[i].run(trial)) != APR_SUCCESS) {
            *message = step_fault(health, i, trial, rv);
            break;
        }
    }
    clock_warn(health, trial);
    if (rv == APR_SUCCESS) {
        lifecycle_warn(health, trial);
        return 1;
    }
    if (rv != MDL_OBJECT_EAWAY && trial->upload != NULL) {
        trial_abort(trial);
    }
    if (rv != MDL_OBJECT_EAWAY) {
        trial_delete(trial);
    }
    return 0;
}

int mdl_health_objects(const mdl_health_t *health, const char **message)
{
    const mdl_object_config_t *config = &health->settings->storage.objects;
    unsigned char digest[MDL_SHA256_LENGTH];
    trial_t trial = {.call = {.patience = PATIENCE},
                     .body = {.bytes = TEXT, .length = sizeof TEXT - 1},
                     .key = mdl_ulid(MDL_STRAY_PREFIX, health->p),
                     .p = health->p};
    const char *why = "libcurl can't be set up.";

    if (config->secret_key == NULL) {
        *message = MDL_SETTINGS_FIRST;
        return 0;
    }
    if (mdl_http_global_init(health->p) != APR_SUCCESS ||
        mdl_object_store_create(&trial.store, config, &why, health->p) != APR_SUCCESS) {
        *message = why;
        return 0;
    }
    mdl_sha256(TEXT, sizeof TEXT - 1, digest);
    trial.body.sha256 = mdl_hex(digest, sizeof digest, health->p);
    *message = config->url;
    return trial_run(health, &trial, message) && bucket_belongs(health, message);
}
