/*
 * Forms of the settings: each form has a token, which only its user can send back, and which takes
 * effect only once.
 */
#ifndef MDL_CORE_FORM_H
#define MDL_CORE_FORM_H

#include "base/crypto.h"
#include "core/problem.h"
#include "db/db.h"

/** A token for a form shown to a user now, in p. */
const char *mdl_form_token(const mdl_secret_t *secret, const char *user, apr_time_t now,
                           apr_pool_t *p);

/** The contents of a token. */
typedef struct {
    const char *id;
    apr_time_t expires_at;
} mdl_form_t;

/** Reads a token.  APR_EINVAL unless it was made for this user, APR_TIMEUP when it is more than
    twelve hours old. */
apr_status_t mdl_form_read(mdl_form_t *form, const mdl_secret_t *secret, const char *user,
                           const char *token, apr_time_t now, apr_pool_t *p);

/** Records that a form takes effect, at the beginning of that transaction; APR_EEXIST when it has
    taken effect before. */
apr_status_t mdl_form_use(mdl_db_t *db, const mdl_form_t *form, apr_time_t now, apr_pool_t *p);

#endif
