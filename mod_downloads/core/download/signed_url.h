/*
 * Signed URLs: each has a token, authenticated by HMAC, that grants its holder a right.  Customers
 * get the URLs of an order's page and of its links, which do not expire, and those of files and
 * archives, which must be used soon (contract, section 8).  A shop gets the URL to write an upload
 * (section 7), and its staff the URL to confirm an address (section 11).  None of them reveals an
 * order, a customer or a product.
 */
#ifndef MDL_CORE_DOWNLOAD_SIGNED_URL_H
#define MDL_CORE_DOWNLOAD_SIGNED_URL_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "base/crypto.h"

/** A random id for the page of an order. */
const char *mdl_signed_url_new_page_id(apr_pool_t *p);

/** The token of an order's page, from the page id stored with the order. */
const char *mdl_signed_url_page_token(const mdl_secret_t *secret, const char *page_id,
                                      apr_pool_t *p);

/** The page's address below public_url. */
const char *mdl_signed_url_page(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_pool_t *p);

/** The page id of a token; NULL when the token is not authentic. */
const char *mdl_signed_url_page_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p);

/** The address below public_url that redirects the customer to one of the order's links. */
const char *mdl_signed_url_link(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_int64_t link_id, apr_pool_t *p);

/** Reads the token of such an address; APR_EINVAL when it is not authentic. */
apr_status_t mdl_signed_url_link_read(const mdl_secret_t *secret, const char *token,
                                      const char **page_id, apr_int64_t *link_id, apr_pool_t *p);

/** The contents of a file's or an archive's token. */
typedef struct {
    const char *page_id; /* of the order's page; not in the token, but session is bound to it */
    const char *session; /* base64url of 16 bytes: the id of the session that the URL opens */
    apr_int64_t assignment_id;
    apr_int64_t asset_id;  /* 0: the archive of all files of the assignment */
    apr_time_t expires_at; /* whole seconds */
} mdl_signed_file_t;

/** A token for a new session of a file or an archive.  Sets file->session. */
const char *mdl_signed_url_file_token(const mdl_secret_t *secret, mdl_signed_file_t *file,
                                      apr_pool_t *p);

/** The address below public_url with such a token, ending in the file's name. */
const char *mdl_signed_url_file(const mdl_secret_t *secret, const char *public_url,
                                mdl_signed_file_t *file, const char *filename, apr_pool_t *p);

/** Reads such a token, except page_id; APR_EINVAL: not authentic.  The caller checks expires_at. */
apr_status_t mdl_signed_url_file_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_file_t *file, apr_pool_t *p);

/** Whether a session's URL was made while the order's page had this page id. */
int mdl_signed_url_session_of(const mdl_secret_t *secret, const char *session, const char *page_id,
                              apr_pool_t *p);

/** The address of an upload ("upl_…") below upload_url. */
const char *mdl_signed_url_upload(const mdl_secret_t *secret, const char *upload_url,
                                  const char *id, apr_pool_t *p);

/** The upload's id of a token; NULL when the token is not authentic. */
const char *mdl_signed_url_upload_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p);

/** The contents of a confirmation's token: its holder reads the emails of this address. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;   /* of 254 bytes at most */
    apr_time_t expires_at; /* whole seconds */
} mdl_signed_confirm_t;

/** The address below public_url of the confirmation page. */
const char *mdl_signed_url_confirm(const mdl_secret_t *secret, const char *public_url,
                                   const mdl_signed_confirm_t *confirm, apr_pool_t *p);

/** Reads its token; APR_EINVAL when it is not authentic.  The caller checks expires_at. */
apr_status_t mdl_signed_url_confirm_read(const mdl_secret_t *secret, const char *token,
                                         mdl_signed_confirm_t *confirm, apr_pool_t *p);

/** The contents of the token by which an address gets no more emails about new versions. */
typedef struct {
    apr_int64_t shop_id;
    const char *address_mac; /* core/shop/unsubscribed.h */
} mdl_signed_unsubscribe_t;

/** The address below public_url of its page. */
const char *mdl_signed_url_unsubscribe(const mdl_secret_t *secret, const char *public_url,
                                       const mdl_signed_unsubscribe_t *unsubscribe, apr_pool_t *p);

/** Reads such a token, which works as long as the secret; APR_EINVAL when it is not authentic. */
apr_status_t mdl_signed_url_unsubscribe_read(const mdl_secret_t *secret, const char *token,
                                             mdl_signed_unsubscribe_t *unsubscribe, apr_pool_t *p);

/** The contents of a token with which a member answers a customer who asks for help. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t request_id;
    const char *user; /* the member, whose rights count; of 255 bytes at most */
} mdl_signed_help_t;

/** The address below public_url of the page for that; NULL if the name is too long. */
const char *mdl_signed_url_help(const mdl_secret_t *secret, const char *public_url,
                                const mdl_signed_help_t *help, apr_pool_t *p);

/** Reads its token; APR_EINVAL when it is not authentic. */
apr_status_t mdl_signed_url_help_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_help_t *help, apr_pool_t *p);

#endif
