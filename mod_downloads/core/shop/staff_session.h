/*
 * Sessions of those who have signed in to the settings with a name and a password.  They end here:
 * what a browser keeps, an id of 256 random bits, opens nothing once its session was ended.  The
 * database has its SHA-256, so that whoever reads that can't sign in.
 *
 * A session that nobody uses ends after eight hours, any after seven days.  A user has 20 at most:
 * the next one ends the oldest.
 */
#ifndef MDL_CORE_SHOP_STAFF_SESSION_H
#define MDL_CORE_SHOP_STAFF_SESSION_H

#include "db/db.h"

/** Effect: begins a session of a user. */
typedef struct {
    const char *user;
    const char *before; /* an id that the browser has from before, whose session ends; or NULL */
    const char *id;     /* out */
} mdl_staff_session_begin_t;
apr_status_t mdl_staff_session_begin(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_begin_t *begin);

/** Effect that reads whose session it is; APR_ENOENT when it has ended, or for any other text. */
typedef struct {
    const char *id;
    const char *user;       /* out */
    apr_time_t expires_at;  /* out: when it is to end, now that it is used */
    int needs_prolongation; /* out: whether mdl_staff_session_prolong is to write that down */
} mdl_staff_session_find_t;
apr_status_t mdl_staff_session_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_session_find_t *find);

/** Effect: writes down when a session that was found is to end. */
apr_status_t mdl_staff_session_prolong(mdl_db_t *db, apr_pool_t *p,
                                       const mdl_staff_session_find_t *found);

/** Ends the session of an id; one that has ended is no error. */
apr_status_t mdl_staff_session_end(mdl_db_t *db, const char *id, apr_pool_t *p);

/** Ends all sessions of a user; *ended gets how many there were. */
apr_status_t mdl_staff_session_end_all(mdl_db_t *db, const char *user, apr_int64_t *ended,
                                       apr_pool_t *p);

#endif
