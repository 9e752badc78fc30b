/*
 * A notice tells a shop's system of something that happened; the API calls it an event.  It is
 * added in the transaction that makes the change.  Once that has committed, the background process
 * numbers it: a shop's notices count from 1, without a gap, in the order in which they were
 * committed, so that whoever has read up to a number has missed none below it.
 *
 * A notice has ids and states, and nothing that opens a download.  (What the staff see of an order
 * is core/order/event.h.)
 */
#ifndef MDL_CORE_SHOP_NOTICE_H
#define MDL_CORE_SHOP_NOTICE_H

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

typedef enum {
    MDL_NOTICE_ASSET_READY,
    MDL_NOTICE_ASSET_VERSION_ADDED,
    MDL_NOTICE_DOWNLOAD_COMPLETED,
    MDL_NOTICE_DOWNLOAD_LIMIT_REACHED,
    MDL_NOTICE_EMAIL_BOUNCED,
    MDL_NOTICE_EMAIL_FAILED,
    MDL_NOTICE_EMAIL_SENT,
    MDL_NOTICE_IMPORT_FAILED,
    MDL_NOTICE_LICENSE_KEY_DELIVERED,
    MDL_NOTICE_LICENSE_KEY_LOW,
    MDL_NOTICE_ORDER_APPROVED,
    MDL_NOTICE_ORDER_ASSIGNED,
    MDL_NOTICE_ORDER_HELD,
    MDL_NOTICE_ORDER_REJECTED,
    MDL_NOTICE_ORDER_RESTORED,
    MDL_NOTICE_ORDER_REVOKED,
    MDL_NOTICE_SHOP_BLOCKED,
    MDL_NOTICE_WEBHOOK_DISABLED,
    MDL_NOTICE_WEBHOOK_TEST
} mdl_notice_type_t;
extern const char *const mdl_notice_type_names[];

typedef struct {
    apr_int64_t id;     /* out */
    apr_int64_t number; /* out; 0: it has none yet */
    apr_int64_t shop_id;
    mdl_notice_type_t type;
    apr_int64_t order_id;            /* 0: of no order */
    const char *storefront_order_id; /* out; NULL: of no order */
    const char *data;                /* a JSON object as text */
    apr_time_t created_at;           /* out */
} mdl_notice_t;

/* Each of these adds to the transaction at hand, and notes that the background process has
   something to do (mdl_db_note_notice). */

apr_status_t mdl_notice_add(mdl_db_t *db, const mdl_notice_t *notice, apr_pool_t *p);

/** Adds one of an order of which only the id is known. */
apr_status_t mdl_notice_add_of_order(mdl_db_t *db, mdl_notice_type_t type, apr_int64_t order_id,
                                     const mdl_json_t *data, apr_pool_t *p);

/** Adds one of an email. */
apr_status_t mdl_notice_add_of_email(mdl_db_t *db, mdl_notice_type_t type, apr_int64_t email_id,
                                     apr_pool_t *p);

/** Adds one of a tag that has come down to its threshold. */
apr_status_t mdl_notice_add_of_tag(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p);

/** Adds one for each order that has got license keys: pairs is a JSON object, each key's id with
    that of its assignment. */
apr_status_t mdl_notice_add_given(mdl_db_t *db, const char *pairs, apr_pool_t *p);

/** Adds one that only this webhook endpoint is sent; its id and created_at are set. */
apr_status_t mdl_notice_add_for_endpoint(mdl_db_t *db, mdl_notice_t *notice,
                                         apr_int64_t endpoint_id, apr_pool_t *p);

/** A download that is complete. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
} mdl_notice_download_t;

/** Adds one for each of these downloads, and another where it was the last that is allowed. */
apr_status_t mdl_notice_add_downloads(mdl_db_t *db, const apr_array_header_t *downloads,
                                      int default_download_limit, apr_pool_t *p);

/** Effect that finds the first notice without a number; *id is 0 if there is none. */
apr_status_t mdl_notice_first_waiting(mdl_db_t *db, apr_pool_t *p, apr_int64_t *id);

/** Effect: numbers a batch of notices. */
typedef struct {
    apr_int64_t from;        /* those of lower ids are left */
    apr_array_header_t *ids; /* out: of those that have got one (apr_int64_t), rising */
    int more;                /* out: there may be others */
} mdl_notice_number_t;
apr_status_t mdl_notice_number(mdl_db_t *db, apr_pool_t *p, mdl_notice_number_t *number);

/** Effect that reads a shop's notices behind a number, the oldest first.  With a type it looks at
    1,000 and no more, so that it may find few or none though there are others.  Refused: 409
    feed_changed. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t after;
    int at_end; /* read none, and find out the number of the last one there is */
    int limit;
    const char *type;          /* NULL: all */
    const char *known_feed;    /* that the numbers must be of; NULL: any */
    mdl_problem_t *problem;    /* with known_feed */
    const char *feed;          /* out: that they are of */
    apr_array_header_t *found; /* out: mdl_notice_t * */
    apr_int64_t last;          /* out: the number behind which to go on, at most the last one's */
    int more;                  /* out: there are, or may be, others */
} mdl_notice_list_t;
apr_status_t mdl_notice_list(mdl_db_t *db, apr_pool_t *p, mdl_notice_list_t *list);

/** Effect: gives the feed another name, in *feed, after a backup was restored: numbers that were
    given since are given again, and who has read some of them is told. */
apr_status_t mdl_notice_renew_feed(mdl_db_t *db, apr_pool_t *p, const char **feed);

/** Reads a notice from a row: id, number, type, data, created_at and storefront_order_id, from the
    column first on. */
void mdl_notice_read(mdl_notice_t *notice, const mdl_rows_t *row, int first);

/** The id of an event, as the API and webhooks show it. */
const char *mdl_notice_event_id(apr_int64_t id, apr_pool_t *p);

/** Writes a notice that was read, as the API and webhooks show it. */
void mdl_notice_write(mdl_json_t *to, const mdl_notice_t *notice, apr_pool_t *p);

#endif
