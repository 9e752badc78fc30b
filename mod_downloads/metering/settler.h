/*
 * The settler: a thread of each httpd child that has delivered, with a connection to the database
 * of its own.  It writes down what transfers deliver and, when they have ended, what they did; it
 * renews this process's lease; and each second it cuts the transfers of customers who may not have
 * their file any more.
 */
#ifndef MDL_METERING_SETTLER_H
#define MDL_METERING_SETTLER_H

#include <apr_pools.h>
#include <apr_time.h>

#include "core/service.h"

/** For each httpd child, before its threads.  When p goes, what is known is written down, which is
    given a few seconds. */
void mdl_settler_init(apr_pool_t *p, const mdl_service_t *service);

/** Starts the thread unless it runs; before a transfer begins. */
void mdl_settler_start(void);

/** Cuts all transfers and has the rest written down, for the process ends. */
void mdl_settler_stop(void);

/** The name of this process's meter. */
const char *mdl_settler_lease_id(void);

/** What a transfer that begins now has to renew the lease to; 0 when the lease is good. */
apr_time_t mdl_settler_due(apr_time_t now);

/** That it has done so. */
void mdl_settler_renewed(apr_time_t until);

/** Says that there is something to do: a first transfer, or one that has ended. */
void mdl_settler_wake(void);

#endif
