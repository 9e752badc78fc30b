/*
 * Signed URLs: whoever has one has the right that it stands for, and the token in it is
 * authenticated by HMAC.  A customer gets those of the order's page and of the page's links, which
 * last, and those of a file or an archive, which must be used soon (contract, section 8).  A shop
 * gets that of an upload, which is the right to write it (section 7); its staff get that of a page
 * on which an address is confirmed (section 11).  None of them reveals an order, a customer or a
 * product.
 */
#ifndef MDL_CORE_DOWNLOAD_SIGNED_URL_H
#define MDL_CORE_DOWNLOAD_SIGNED_URL_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "base/crypto.h"

/** A random id for the page of an order. */
const char *mdl_signed_url_new_page_id(apr_pool_t *p);

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

/** What the URL of a file or of an archive says. */
typedef struct {
    const char *page_id; /* of the order's page; not in the URL, but the session is tied to it */
    const char *session; /* base64url of 16 bytes: names the session that the URL opens */
    apr_int64_t assignment_id;
    apr_int64_t asset_id;  /* 0: the archive of all files of the assignment */
    apr_time_t expires_at; /* whole seconds */
} mdl_signed_file_t;

/** A token for a new session of a file, or of an archive; session is made here. */
const char *mdl_signed_url_file_token(const mdl_secret_t *secret, mdl_signed_file_t *file,
                                      apr_pool_t *p);

/** The address below public_url with such a token, and with the file's name at its end. */
const char *mdl_signed_url_file(const mdl_secret_t *secret, const char *public_url,
                                mdl_signed_file_t *file, const char *filename, apr_pool_t *p);

/** Reads such a token, all but page_id; APR_EINVAL when it is not one of ours.  Whether it has
   expired is left to the caller. */
apr_status_t mdl_signed_url_file_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_file_t *file, apr_pool_t *p);

/** Whether a session's URL was made while the order's page had this page id. */
int mdl_signed_url_session_of(const mdl_secret_t *secret, const char *session, const char *page_id,
                              apr_pool_t *p);

/** The address of an upload ("upl_…") below upload_url. */
const char *mdl_signed_url_upload(const mdl_secret_t *secret, const char *upload_url,
                                  const char *id, apr_pool_t *p);

/** The upload's id of a token; NULL when it is not one of ours. */
const char *mdl_signed_url_upload_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p);

/** What the URL of a confirmation says: that whoever has it reads the emails of an address. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;   /* of 254 bytes at most */
    apr_time_t expires_at; /* whole seconds */
} mdl_signed_confirm_t;

/** The address below public_url of the page that confirms. */
const char *mdl_signed_url_confirm(const mdl_secret_t *secret, const char *public_url,
                                   const mdl_signed_confirm_t *confirm, apr_pool_t *p);

/** Reads its token; APR_EINVAL when it is not one of ours.  Whether it has expired is left to the
    caller. */
apr_status_t mdl_signed_url_confirm_read(const mdl_secret_t *secret, const char *token,
                                         mdl_signed_confirm_t *confirm, apr_pool_t *p);

#endif
