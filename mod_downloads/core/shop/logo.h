/*
 * A shop's logo.  The image that the shop sends waits until a job has made a small, bare PNG of it
 * (base/image/logo.h), which everybody may fetch by its digest.  The last ones stay, because emails
 * that have left show them.
 */
#ifndef MDL_CORE_SHOP_LOGO_H
#define MDL_CORE_SHOP_LOGO_H

#include "base/image/logo.h"
#include "core/problem.h"
#include "db/db.h"

#define MDL_LOGO_MAX_BYTES (2 * 1024 * 1024)
#define MDL_LOGOS_KEPT     10 /* of each shop */

typedef struct {
    int waits;               /* whether an image waits for its job */
    mdl_image_fault_t fault; /* why the last image could not become the logo, or MDL_IMAGE_GOOD */
} mdl_logo_t;

/** The fault of a name, MDL_IMAGE_GOOD for NULL. */
mdl_image_fault_t mdl_logo_fault(const char *name);

/** A fault's name, such as "damaged", and a sentence for who has sent the image. */
const char *mdl_logo_fault_name(mdl_image_fault_t fault);
const char *mdl_logo_fault_text(mdl_image_fault_t fault);

/** Effect: has a job make the shop's logo of an image, in place of one that still waits.  Refused:
    400 when its header says that it can't be used, 413 when it is too long. */
typedef struct {
    apr_int64_t shop_id;
    const void *image;
    apr_size_t length;
    mdl_image_fault_t fault; /* out: why it is refused with 400 */
    mdl_problem_t *problem;
} mdl_logo_put_t;
apr_status_t mdl_logo_put(mdl_db_t *db, apr_pool_t *p, mdl_logo_put_t *put);

/** Deletes a shop's logo, all earlier ones, and the image that waits. */
apr_status_t mdl_logo_delete(mdl_db_t *db, apr_int64_t shop_id, apr_pool_t *p);

/** Effect: reads a logo of any shop that is not blocked; APR_ENOENT: there is none. */
typedef struct {
    const char *sha256;
    void *png; /* out */
    apr_size_t length;
} mdl_logo_find_t;
apr_status_t mdl_logo_find(mdl_db_t *db, apr_pool_t *p, mdl_logo_find_t *find);

/** Reads a job's image; APR_ENOENT when another one has taken its place. */
apr_status_t mdl_logo_image_find(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                 void **image, apr_size_t *length, apr_pool_t *p);

/** Ends a job's wait: what was made of its image becomes the logo, or the shop is told its fault.
    NULL: the service could do nothing. */
apr_status_t mdl_logo_made(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                           const mdl_logo_image_t *made, apr_pool_t *p);

#endif
