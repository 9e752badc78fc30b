#include "core/shop/logo.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/crypto.h"
#include "base/names.h"
#include "base/ulid.h"
#include "core/job.h"

#define ATTEMPTS 5

static const char *const fault_names[] = {[MDL_IMAGE_GOOD] = "none",
                                          [MDL_IMAGE_UNKNOWN] = "unknown",
                                          [MDL_IMAGE_TOO_LARGE] = "too_large",
                                          [MDL_IMAGE_DAMAGED] = "damaged",
                                          [MDL_IMAGE_UNSUPPORTED] = "unsupported",
                                          [MDL_IMAGE_TOO_COSTLY] = "too_costly",
                                          NULL};

static const char *const fault_texts[] = {
    [MDL_IMAGE_GOOD] = "",
    [MDL_IMAGE_UNKNOWN] = "A logo is a PNG or a JPEG, and this is neither.",
    [MDL_IMAGE_TOO_LARGE] = "The image has more than 16 megapixels (4096 x 4096).",
    [MDL_IMAGE_DAMAGED] = "The image is damaged or cut short.",
    [MDL_IMAGE_UNSUPPORTED] = "The image has colours for print (CMYK). Save it with RGB.",
    [MDL_IMAGE_TOO_COSTLY] = "The image takes too much time or memory. Save it anew as a PNG."};

mdl_image_fault_t mdl_logo_fault(const char *name)
{
    int fault = name != NULL ? mdl_names_find(fault_names, name) : MDL_IMAGE_GOOD;

    return fault >= 0 ? (mdl_image_fault_t)fault : MDL_IMAGE_DAMAGED;
}

const char *mdl_logo_fault_name(mdl_image_fault_t fault)
{
    return fault_names[fault];
}

const char *mdl_logo_fault_text(mdl_image_fault_t fault)
{
    return fault_texts[fault];
}

static apr_status_t logo_check(mdl_logo_put_t *put)
{
    mdl_image_header_t header;

    if (put->length > MDL_LOGO_MAX_BYTES) {
        mdl_problem_count(put->problem, MDL_LOGO_MAX_BYTES, (apr_int64_t)put->length);
        return mdl_problem_set(
            put->problem, 413, "request_too_large",
            "A logo may have at most 2 MiB: make it smaller, or save it as a JPEG.");
    }
    put->fault = mdl_image_header(put->image, put->length, &header);
    return put->fault == MDL_IMAGE_GOOD ? APR_SUCCESS
                                        : mdl_problem_set(put->problem, 400, "invalid_request",
                                                          mdl_logo_fault_text(put->fault));
}

apr_status_t mdl_logo_put(mdl_db_t *db, apr_pool_t *p, mdl_logo_put_t *put)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_LOGO,
                     .lane = MDL_LANE_HASH,
                     .shop_id = put->shop_id,
                     .max_attempts = ATTEMPTS};
    apr_status_t rv = logo_check(put);

    if (rv != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(LOGO_IMAGE_PUT, .shop_id = put->shop_id, .job_id = job.id,
                                .image = mdl_base64url(put->image, put->length, p)))) !=
            APR_SUCCESS) {
        return rv;
    }
    return mdl_job_insert(db, &job, p);
}

/* *bytes is NULL for what is not base64url. */
static void logo_decode(const char *text, void **bytes, apr_size_t *length, apr_pool_t *p)
{
    *length = strlen(text) * 3 / 4;
    *bytes = apr_palloc(p, *length + 1);
    if (mdl_base64url_decode(*bytes, *length, text) != APR_SUCCESS) {
        *bytes = NULL;
    }
}

apr_status_t mdl_logo_find(mdl_db_t *db, apr_pool_t *p, mdl_logo_find_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(LOGO_FIND, find->sha256));

    if (rv == APR_SUCCESS) {
        logo_decode(mdl_rows_text(row, 0), &find->png, &find->length, p);
        rv = find->png != NULL ? APR_SUCCESS : APR_EGENERAL;
    }
    return rv;
}

apr_status_t mdl_logo_image_find(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                 void **image, apr_size_t *length, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(LOGO_IMAGE_OF_JOB, .shop_id = shop_id, .job_id = job_id));

    if (rv == APR_SUCCESS) {
        logo_decode(mdl_rows_text(row, 0), image, length, p);
        rv = *image != NULL ? APR_SUCCESS : APR_EGENERAL;
    }
    return rv;
}

static apr_status_t logo_keep(mdl_db_t *db, apr_int64_t shop_id, const mdl_logo_image_t *made,
                              apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    const char *sha256;
    apr_status_t rv;

    mdl_sha256(made->png, made->length, digest);
    sha256 = mdl_hex(digest, sizeof digest, p);
    if ((rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(LOGO_INSERT, .shop_id = shop_id, .sha256 = sha256,
                                .png = mdl_base64url(made->png, made->length, p),
                                .now = apr_time_now()))) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(LOGO_PRUNE, .shop_id = shop_id, .limit = MDL_LOGOS_KEPT))) !=
            APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(SHOP_SET_LOGO, .logo_sha256 = sha256, .logo_width = made->width,
                             .logo_height = made->height, .now = apr_time_now(), .id = shop_id));
}

apr_status_t mdl_logo_made(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                           const mdl_logo_image_t *made, apr_pool_t *p)
{
    apr_int64_t waited;
    apr_status_t rv = mdl_db_exec(db, &waited, p,
                                  MDL_Q(LOGO_IMAGE_DELETE, .shop_id = shop_id, .job_id = job_id));

    if (rv != APR_SUCCESS || waited == 0) {
        return rv;
    }
    if (made != NULL && made->fault == MDL_IMAGE_GOOD) {
        return logo_keep(db, shop_id, made, p);
    }
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(SHOP_SET_LOGO_FAULT,
              .logo_fault = fault_names[made != NULL ? made->fault : MDL_IMAGE_TOO_COSTLY],
              .now = apr_time_now(), .id = shop_id));
}

apr_status_t mdl_logo_delete(mdl_db_t *db, apr_int64_t shop_id, apr_pool_t *p)
{
    apr_status_t rv;

    if ((rv = mdl_db_exec(db, NULL, p, MDL_Q(LOGO_IMAGE_DELETE_ANY, shop_id))) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(LOGO_DELETE_ALL, shop_id))) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(SHOP_SET_LOGO, .logo_sha256 = NULL, .logo_width = 0, .logo_height = 0,
                             .now = apr_time_now(), .id = shop_id));
}
