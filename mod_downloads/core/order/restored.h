/*
 * What a database is told that was restored from a backup.  Since the backup the service has gone
 * on: emails have left, ids were given, members have signed out.
 */
#ifndef MDL_CORE_ORDER_RESTORED_H
#define MDL_CORE_ORDER_RESTORED_H

#include "db/db.h"

#define MDL_RESTORED_IDS     10000000 /* are skipped in each table */
#define MDL_RESTORED_NUMBERS 1000     /* of orders made by hand, in each shop */

/**
 * Effect: ends all holds on the storage, gives the events a new feed, signs everybody out, and
 * skips ids, so that none is given twice.
 *
 * Emails that wait are set aside, since they may have left: those to customers have failed, and can
 * be tried again; those to staff, and those with the links of an address, are dropped.  Buyers who
 * are being given a product get no email, and staff are not told of what waited.  Everything else
 * goes on, for it does no harm twice: imports, hashing, look-ups, logos, deliveries to webhooks,
 * whose receivers know events by their ids, and the wait for what an email lacked.
 */
typedef struct {
    apr_time_t made_at; /* the backup */
    int send_emails;    /* emails are not set aside */
    apr_int64_t emails; /* out: to customers, that were set aside */
} mdl_restored_t;
apr_status_t mdl_restored(mdl_db_t *db, apr_pool_t *p, mdl_restored_t *restored);

/** Effect: APR_ENOENT if the database does not know the hold that its backup was made under, so
    that mdl_restored has run. */
apr_status_t mdl_restored_pending(mdl_db_t *db, apr_pool_t *p, const char *hold);

#endif
