/*
 * Two concurrent effects on PostgreSQL: the second begins, in another process, when the first has
 * done all but its COMMIT.
 */
#ifndef MDL_T_UNIT_MEETING_H
#define MDL_T_UNIT_MEETING_H

#include "t/unit/database.h"

typedef struct {
    const database_t *database;
    mdl_effect_fn *first;
    void *first_arg;
    mdl_effect_fn *second;
    void *second_arg;
    apr_status_t expected; /* the second's result */
    const char *free; /* SQL that must not wait: the waiting second has not locked its rows yet */
    pid_t child;
} meeting_t;

static inline int waits_for_lock(const database_t *database)
{
    PGconn *connection = PQconnectdb(database->params);
    int waits = 0;

    for (int i = 0; i < 12000 && !waits; i++) {
        PGresult *result = PQexec(
            connection, "SELECT 1 FROM pg_stat_activity"
                        " WHERE wait_event_type = 'Lock' AND datname = current_database()");

        waits = PQntuples(result) > 0;
        PQclear(result);
        usleep(5000);
    }
    PQfinish(connection);
    return waits;
}

static inline apr_status_t meet(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    meeting_t *meeting = arg;
    apr_status_t rv = meeting->first(on, p, meeting->first_arg);

    meeting->child = child_begin();
    if (meeting->child == 0) {
        mdl_db_t *own = database_open(meeting->database, p);

        database_is_patient(own);
        child_end(mdl_db_write(own, meeting->second, meeting->second_arg, p) == meeting->expected);
    }
    ok(waits_for_lock(meeting->database), "the second effect waits for the first");
    if (meeting->free != NULL) {
        ok(pgsql_command(meeting->database->params, meeting->free),
           "  and has not locked the rows that it needs next");
    }
    return rv;
}

static inline void meets(mdl_db_t *db, meeting_t meeting, const char *name, apr_pool_t *p)
{
    is_int(mdl_db_write(db, meet, &meeting, p), APR_SUCCESS,
           apr_pstrcat(p, name, ": the first effect succeeds", NULL));
    ok(child_good(meeting.child),
       apr_pstrcat(p, name, ": the second returns what is expected", NULL));
}

#endif
