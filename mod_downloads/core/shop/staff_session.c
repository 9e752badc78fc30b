#include "core/shop/staff_session.h"

#include <string.h>

#include <apr_time.h>

#include "base/crypto.h"

#define ID_BYTES     32
#define IDLE         apr_time_from_sec(8 * 3600)
#define LIFETIME     apr_time_from_sec(7 * 86400)
#define LATE         apr_time_from_sec(5 * 60) /* the end may be stored late: not every request writes */
#define SESSIONS_MAX 20                        /* of a user */

static const char *session_key(const char *id, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(id, strlen(id), digest);
    return mdl_hex(digest, sizeof digest, p);
}

static apr_time_t session_end_of(apr_time_t created_at, apr_time_t now)
{
    return now + IDLE < created_at + LIFETIME ? now + IDLE : created_at + LIFETIME;
}

apr_status_t mdl_staff_session_begin(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_begin_t *begin)
{
    unsigned char id[ID_BYTES];
    apr_time_t now = apr_time_now();
    apr_status_t rv = APR_SUCCESS;

    mdl_random(id, sizeof id);
    begin->id = mdl_base64url(id, sizeof id, p);
    if (begin->before != NULL) {
        rv = mdl_staff_session_end(db, begin->before, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(STAFF_SESSION_INSERT, .id = session_key(begin->id, p),
                               .user_name = begin->user, .now = now,
                               .expires_at = session_end_of(now, now)));
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p,
                                           MDL_Q(STAFF_SESSION_PRUNE, .user_name = begin->user,
                                                 .kept = SESSIONS_MAX, .now = now))
                             : rv;
}

apr_status_t mdl_staff_session_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_find_t *find)
{
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(STAFF_SESSION_FIND, .id = session_key(find->id, p), .now = now));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    find->user = MDL_TEXT(row, staff_session_find, user_name);
    find->expires_at = session_end_of(MDL_INT(row, staff_session_find, created_at), now);
    find->needs_prolongation = find->expires_at >
                               MDL_INT(row, staff_session_find, expires_at) + LATE;
    return APR_SUCCESS;
}

apr_status_t mdl_staff_session_prolong(mdl_db_t *db, apr_pool_t *p,
                                       const mdl_staff_session_find_t *found)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(STAFF_SESSION_PROLONG, .expires_at = found->expires_at,
                             .id = session_key(found->id, p)));
}

apr_status_t mdl_staff_session_end(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STAFF_SESSION_DELETE, session_key(id, p)));
}

apr_status_t mdl_staff_session_end_all(mdl_db_t *db, const char *user, apr_int64_t *ended,
                                       apr_pool_t *p)
{
    return mdl_db_exec(db, ended, p, MDL_Q(STAFF_SESSION_DELETE_OF_USER, user));
}
