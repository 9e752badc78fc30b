/*
 * Sessions of users who have signed in to the settings with a name and a password.  The browser has
 * a random id of 256 bits, which is useless once the session has ended.  The database has the id's
 * SHA-256, so nobody can sign in with what the database has.
 *
 * An unused session ends after eight hours, any session after seven days.  A user has 20 sessions
 * at most: another one ends the oldest.
 */
#ifndef MDL_CORE_SHOP_STAFF_SESSION_H
#define MDL_CORE_SHOP_STAFF_SESSION_H

#include "db/db.h"

/** Effect: begins a session of a user. */
typedef struct {
    const char *user;
    const char *before; /* the browser's previous id, whose session ends; or NULL */
    const char *id;     /* out */
} mdl_staff_session_begin_t;
apr_status_t mdl_staff_session_begin(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_begin_t *begin);

/** Effect: reads the session with an id; APR_ENOENT when it has ended or never existed. */
typedef struct {
    const char *id;
    const char *user;       /* out */
    apr_time_t expires_at;  /* out: its end, now that it is used */
    int needs_prolongation; /* out: whether to call mdl_staff_session_prolong */
} mdl_staff_session_find_t;
apr_status_t mdl_staff_session_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_find_t *find);

/** Effect: stores the new end of a session that was found. */
apr_status_t mdl_staff_session_prolong(mdl_db_t *db, apr_pool_t *p,
                                       const mdl_staff_session_find_t *found);

/** Ends the session with an id; no error if it has ended already. */
apr_status_t mdl_staff_session_end(mdl_db_t *db, const char *id, apr_pool_t *p);

/** Ends all sessions of a user; *ended gets how many there were. */
apr_status_t mdl_staff_session_end_all(mdl_db_t *db, const char *user, apr_int64_t *ended,
                                       apr_pool_t *p);

#endif
