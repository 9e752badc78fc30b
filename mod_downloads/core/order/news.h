/*
 * Buyers are told of new versions of their files.  A job looks for the purchases that have a file,
 * and notes each as an item.  Each shop in turn then has emails queued: one an address a day, about
 * all its items, and a limited number a day.
 */
#ifndef MDL_CORE_ORDER_NEWS_H
#define MDL_CORE_ORDER_NEWS_H

#include "base/crypto.h"
#include "core/job.h"
#include "core/order/order.h"
#include "db/db.h"

#define MDL_NEWS_LOOKED     500  /* purchases that the job tell_buyers looks at in one turn */
#define MDL_NEWS_EMAILS_MAX 2000 /* of a shop within a day */
#define MDL_NEWS_FILES_MAX  50   /* in an email */

/** The next purchases of a job tell_buyers. */
typedef struct mdl_news_batch_t mdl_news_batch_t;

/** Reads them; *batch is NULL when there are none, or the version is told by a later job. */
apr_status_t mdl_news_look(mdl_db_t *db, const mdl_job_t *job, mdl_news_batch_t **batch,
                           apr_pool_t *p);

/** Notes their items. */
apr_status_t mdl_news_note(mdl_db_t *db, const mdl_news_batch_t *batch, apr_pool_t *p);

/** Effect: whether a shop's turn has come. */
apr_status_t mdl_news_waits(mdl_db_t *db, apr_pool_t *p, int *waits);

/** Effect: queues emails of the shop whose turn it is. */
typedef struct {
    const mdl_secret_t *secret;
    int limit;  /* of emails */
    int served; /* out: whether it was any shop's turn */
} mdl_news_serve_t;
apr_status_t mdl_news_serve(mdl_db_t *db, apr_pool_t *p, mdl_news_serve_t *serve);

/** A file of an email. */
typedef struct {
    apr_int64_t order_id;
    const char *address; /* in lower case */
    apr_int64_t asset_id;
    const char *title;
    const char *filename;
    int version;
    const char *note;         /* or NULL */
    const mdl_order_t *order; /* through which its customer gets it now; each file once */
} mdl_news_file_t;

/** What a job news_email tells. */
typedef struct {
    const mdl_secret_t *secret;
    int default_download_limit;
    const char *to;            /* out, like the rest; NULL: it tells nothing any more */
    const char *address_mac;   /* core/shop/unsubscribed.h */
    apr_array_header_t *files; /* mdl_news_file_t */
    int truncated;             /* there are more */
} mdl_news_email_t;
apr_status_t mdl_news_read(mdl_db_t *db, const mdl_job_t *job, mdl_news_email_t *email,
                           apr_pool_t *p);

/** Forgets the items of an email that has left or tells nothing any more.  Those of one that failed
    stay, so that it can be retried. */
apr_status_t mdl_news_over(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

#endif
