/*
 * An email that tells a shop's staff what they have to do something about: queued in the
 * transaction that causes it, sent by the background process, and gone after that.
 */
#ifndef MDL_CORE_SHOP_STAFF_EMAIL_H
#define MDL_CORE_SHOP_STAFF_EMAIL_H

#include "base/text/json.h"
#include "db/db.h"

typedef struct {
    const char *to;
    const char *template; /* the name of its templates, without ".subject", ".txt" and ".html" */
    mdl_json_t *data;     /* what they show */
} mdl_staff_email_t;

/** Queues one to each owner of a shop whose name is an address; if there is none, to the address of
    the shop; and if that has none, to nobody. */
apr_status_t mdl_staff_email_queue(mdl_db_t *db, apr_int64_t shop_id, const char *template,
                                   const mdl_json_t *data, apr_pool_t *p);

/** Reads the email of a job; APR_ENOENT when there is none. */
apr_status_t mdl_staff_email_find(mdl_db_t *db, const char *job_id, mdl_staff_email_t *email,
                                  apr_pool_t *p);

/** Deletes the email of a job that has ended. */
apr_status_t mdl_staff_email_delete(mdl_db_t *db, const char *job_id, apr_pool_t *p);

#endif
