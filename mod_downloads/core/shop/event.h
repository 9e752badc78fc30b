/*
 * An event tells a shop's system of something that happened.  It is
 * added in the transaction that makes the change.  Once that has committed, the background process
 * numbers it: a shop's events count from 1, without a gap, in the order in which they were
 * committed, so that whoever has read up to a number has missed none below it.
 *
 * An event has ids and states, and nothing that opens a download.  (What the staff see of an order
 * is its timeline, core/order/timeline.h.)
 */
#ifndef MDL_CORE_SHOP_EVENT_H
#define MDL_CORE_SHOP_EVENT_H

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

typedef enum {
    MDL_EVENT_ASSET_READY,
    MDL_EVENT_ASSET_VERSION_ADDED,
    MDL_EVENT_DOWNLOAD_COMPLETED,
    MDL_EVENT_DOWNLOAD_LIMIT_REACHED,
    MDL_EVENT_EMAIL_BOUNCED,
    MDL_EVENT_EMAIL_FAILED,
    MDL_EVENT_EMAIL_SENT,
    MDL_EVENT_IMPORT_FAILED,
    MDL_EVENT_LICENSE_KEY_DELIVERED,
    MDL_EVENT_LICENSE_KEY_LOW,
    MDL_EVENT_ORDER_APPROVED,
    MDL_EVENT_ORDER_ASSIGNED,
    MDL_EVENT_ORDER_HELD,
    MDL_EVENT_ORDER_REJECTED,
    MDL_EVENT_ORDER_RESTORED,
    MDL_EVENT_ORDER_REVOKED,
    MDL_EVENT_SHOP_BLOCKED,
    MDL_EVENT_WEBHOOK_DISABLED,
    MDL_EVENT_WEBHOOK_TEST
} mdl_event_type_t;
extern const char *const mdl_event_type_names[];

typedef struct {
    apr_int64_t id;     /* out */
    apr_int64_t number; /* out; 0: it has none yet */
    apr_int64_t shop_id;
    mdl_event_type_t type;
    apr_int64_t order_id;            /* 0: of no order */
    const char *storefront_order_id; /* out; NULL: of no order */
    const char *data;                /* a JSON object as text */
    apr_time_t created_at;           /* out */
} mdl_event_t;

/* Each of these adds to the transaction at hand, and notes that the background process has
   something to do (mdl_db_note_event). */

apr_status_t mdl_event_add(mdl_db_t *db, const mdl_event_t *event, apr_pool_t *p);

/** Adds one of an order of which only the id is known. */
apr_status_t mdl_event_add_of_order(mdl_db_t *db, mdl_event_type_t type, apr_int64_t order_id,
                                    const mdl_json_t *data, apr_pool_t *p);

/** Adds one of an email. */
apr_status_t mdl_event_add_of_email(mdl_db_t *db, mdl_event_type_t type, apr_int64_t email_id,
                                    apr_pool_t *p);

/** Adds one of a tag that has come down to its threshold. */
apr_status_t mdl_event_add_of_tag(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p);

/** Adds one for each order that has got license keys: pairs is a JSON object, each key's id with
    that of its assignment. */
apr_status_t mdl_event_add_given(mdl_db_t *db, const char *pairs, apr_pool_t *p);

/** Adds one that only this webhook endpoint is sent; its id and created_at are set. */
apr_status_t mdl_event_add_for_endpoint(mdl_db_t *db, mdl_event_t *event, apr_int64_t endpoint_id,
                                        apr_pool_t *p);

/** A download that is complete. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
} mdl_event_download_t;

/** Adds one for each of these downloads, and another where it was the last that is allowed. */
apr_status_t mdl_event_add_downloads(mdl_db_t *db, const apr_array_header_t *downloads,
                                     int default_download_limit, apr_pool_t *p);

/** Effect that finds the first event without a number; *id is 0 if there is none. */
apr_status_t mdl_event_first_waiting(mdl_db_t *db, apr_pool_t *p, apr_int64_t *id);

/** Effect: numbers a batch of events. */
typedef struct {
    apr_int64_t from;        /* those of lower ids are left */
    apr_array_header_t *ids; /* out: of those that have got one (apr_int64_t), rising */
    int more;                /* out: there may be others */
} mdl_event_number_t;
apr_status_t mdl_event_number(mdl_db_t *db, apr_pool_t *p, mdl_event_number_t *number);

/** Effect that reads a shop's events behind a number, the oldest first.  With a type it looks at
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
    apr_array_header_t *found; /* out: mdl_event_t * */
    apr_int64_t last;          /* out: the number behind which to go on, at most the last one's */
    int more;                  /* out: there are, or may be, others */
} mdl_event_list_t;
apr_status_t mdl_event_list(mdl_db_t *db, apr_pool_t *p, mdl_event_list_t *list);

/** Effect: gives the feed another name, in *feed, after a backup was restored: numbers that were
    given since are given again, and who has read some of them is told. */
apr_status_t mdl_event_renew_feed(mdl_db_t *db, apr_pool_t *p, const char **feed);

/** Reads an event from a row: id, number, type, data, created_at and storefront_order_id, from the
    column first on. */
void mdl_event_read(mdl_event_t *event, const mdl_rows_t *row, int first);

/** The id of an event, as the API and webhooks show it. */
const char *mdl_event_id_text(apr_int64_t id, apr_pool_t *p);

/** Writes an event that was read, as the API and webhooks show it. */
void mdl_event_write(mdl_json_t *to, const mdl_event_t *event, apr_pool_t *p);

#endif
