/*
 * Forms of the settings: each that is shown carries a token, which its user alone can send back,
 * and which takes effect once.
 */
#ifndef MDL_CORE_FORM_H
#define MDL_CORE_FORM_H

#include "base/crypto.h"
#include "core/problem.h"
#include "db/db.h"

/** A token for a form that is shown to a user at this time, in p. */
const char *mdl_form_token(const mdl_secret_t *secret, const char *user, apr_time_t now,
                           apr_pool_t *p);

/** What a token stands for. */
typedef struct {
    const char *id;
    apr_time_t expires_at;
} mdl_form_t;

/** Reads a token.  APR_EINVAL when it is not one that this user was shown, APR_TIMEUP when that was
    more than twelve hours ago. */
apr_status_t mdl_form_read(mdl_form_t *form, const mdl_secret_t *secret, const char *user,
                           const char *token, apr_time_t now, apr_pool_t *p);

/** Notes that a form takes effect, first thing in the transaction in which it does; APR_EEXIST when
   it has before. */
apr_status_t mdl_form_use(mdl_db_t *db, const mdl_form_t *form, apr_time_t now, apr_pool_t *p);

#endif
