/*
 * Capability URLs: who has one has the right that it stands for.  A customer gets those of the
 * order's page and of the way to a link of it, which last, and those of a file or of an archive,
 * which must be used soon (contract, section 8); none tells an order, a customer or a product.  A
 * shop gets that of an upload, which is the right to write it (section 7).  All are authenticated
 * by HMAC.
 */
#ifndef MDL_CORE_DOWNLOAD_SIGNED_URL_H
#define MDL_CORE_DOWNLOAD_SIGNED_URL_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "base/crypto.h"

/** The token of an order's page, from the page id that the order's row keeps. */
const char *mdl_signed_url_page_token(const mdl_secret_t *secret, const char *page_id,
                                      apr_pool_t *p);

/** The page's address below public_url. */
const char *mdl_signed_url_page(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_pool_t *p);

/** The page id of a token; NULL when it is not one of ours. */
const char *mdl_signed_url_page_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p);

/** The address below public_url that leads an order's customer to one of its links. */
const char *mdl_signed_url_link(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_int64_t link_id, apr_pool_t *p);

/** Reads its token; APR_EINVAL when it is not one of ours. */
apr_status_t mdl_signed_url_link_read(const mdl_secret_t *secret, const char *token,
                                      const char **page_id, apr_int64_t *link_id, apr_pool_t *p);

/** What a file's or an archive's URL says.  session names the download that it opens: one allowance
    of each file. */
typedef struct {
    const char *session; /* base64url of 16 random bytes */
    apr_int64_t assignment_id;
    apr_int64_t asset_id;  /* 0: all files of the assignment, as an archive */
    apr_time_t expires_at; /* whole seconds */
} mdl_signed_file_t;

/** A token for a new session of a file; session is made here. */
const char *mdl_signed_url_file_token(const mdl_secret_t *secret, mdl_signed_file_t *file,
                                      apr_pool_t *p);

/** The address below public_url of a new session of a file, with the file's name at its end. */
const char *mdl_signed_url_file(const mdl_secret_t *secret, const char *public_url,
                                mdl_signed_file_t *file, const char *filename, apr_pool_t *p);

/** Reads a token; APR_EINVAL when it is not one of ours.  Whether it expired is the caller's. */
apr_status_t mdl_signed_url_file_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_file_t *file, apr_pool_t *p);

/** The same three for an archive; asset_id is set to 0. */
const char *mdl_signed_url_archive_token(const mdl_secret_t *secret, mdl_signed_file_t *archive,
                                         apr_pool_t *p);
const char *mdl_signed_url_archive(const mdl_secret_t *secret, const char *public_url,
                                   mdl_signed_file_t *archive, const char *filename, apr_pool_t *p);
apr_status_t mdl_signed_url_archive_read(const mdl_secret_t *secret, const char *token,
                                         mdl_signed_file_t *archive, apr_pool_t *p);

/** The address of an upload ("upl_…") below upload_url. */
const char *mdl_signed_url_upload(const mdl_secret_t *secret, const char *upload_url,
                                  const char *id, apr_pool_t *p);

/** The upload's id of a token; NULL when it is not one of ours. */
const char *mdl_signed_url_upload_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p);

#endif
