/*
 * An event tells a shop's system that something happened.  It is added in the transaction that
 * makes the change.  After the commit, the background process numbers it: a shop's events count
 * from 1, without a gap, in the order of their commits, so a client that has read up to a number
 * has missed none below it.
 *
 * An event has ids and states, and nothing that opens a download.  (Staff see an order's timeline
 * instead, core/order/timeline.h.)
 */
#ifndef MDL_CORE_SHOP_EVENT_H
#define MDL_CORE_SHOP_EVENT_H

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

typedef enum {
    MDL_EVENT_ASSET_READY,
    MDL_EVENT_ASSET_VERSION_ADDED,
    MDL_EVENT_CUSTOMER_ADDRESS_CHANGED,
    MDL_EVENT_CUSTOMER_MERGED,
    MDL_EVENT_DOWNLOAD_COMPLETED,
    MDL_EVENT_DOWNLOAD_LIMIT_REACHED,
    MDL_EVENT_EMAIL_BOUNCED,
    MDL_EVENT_EMAIL_FAILED,
    MDL_EVENT_EMAIL_SENT,
    MDL_EVENT_HELP_REQUESTED,
    MDL_EVENT_IMPORT_FAILED,
    MDL_EVENT_LICENSE_KEY_DELIVERED,
    MDL_EVENT_LICENSE_KEY_LOW,
    MDL_EVENT_ORDER_ADDRESS_CHANGED,
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
    apr_int64_t number; /* out; 0: none yet */
    apr_int64_t shop_id;
    mdl_event_type_t type;
    apr_int64_t order_id;            /* 0: none */
    const char *storefront_order_id; /* out; NULL: none */
    const char *data;                /* a JSON object as text */
    apr_time_t created_at;           /* out */
} mdl_event_t;

/* Each of these adds events in the caller's transaction, and notes that the background process has
   something to do (mdl_db_note_event). */

apr_status_t mdl_event_add(mdl_db_t *db, const mdl_event_t *event, apr_pool_t *p);

/** Adds an event of an order, by the order's id alone. */
apr_status_t mdl_event_add_of_order(mdl_db_t *db, mdl_event_type_t type, apr_int64_t order_id,
                                    const mdl_json_t *data, apr_pool_t *p);

/** Adds an event of an email. */
apr_status_t mdl_event_add_of_email(mdl_db_t *db, mdl_event_type_t type, apr_int64_t email_id,
                                    apr_pool_t *p);

/** Adds the event of a tag whose stock has fallen to its threshold. */
apr_status_t mdl_event_add_of_tag(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p);

/** Adds an event for each order that got license keys. pairs: JSON object, key id → assignment
    id. */
apr_status_t mdl_event_add_given(mdl_db_t *db, const char *pairs, apr_pool_t *p);

/** Adds an event that is only sent to this webhook endpoint; sets its id and created_at. */
apr_status_t mdl_event_add_for_endpoint(mdl_db_t *db, mdl_event_t *event, apr_int64_t endpoint_id,
                                        apr_pool_t *p);

/** A completed download. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    apr_int64_t bytes;    /* its size */
} mdl_event_download_t;

/** Adds an event for each of these downloads, and another for each that reached the limit. */
apr_status_t mdl_event_add_downloads(mdl_db_t *db, const apr_array_header_t *downloads,
                                     int default_download_limit, apr_pool_t *p);

/** Effect: reads the id of the first event without a number; 0: none. */
apr_status_t mdl_event_first_waiting(mdl_db_t *db, apr_pool_t *p, apr_int64_t *id);

/** Effect: numbers a batch of events. */
typedef struct {
    apr_int64_t from;           /* the lowest id to number */
    apr_array_header_t *ids;    /* out: apr_int64_t, of the numbered events, ascending */
    apr_array_header_t *events; /* out: mdl_event_t, the same events without their numbers */
    int more;                   /* out: whether there may be more */
} mdl_event_number_t;
apr_status_t mdl_event_number(mdl_db_t *db, apr_pool_t *p, mdl_event_number_t *number);

/** Effect: reads a shop's events after a number, oldest first.  With a type it looks at 1,000
    events at most, so it may find few although there are more.  Refused: 409 feed_changed. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t after;
    int at_end; /* reads none, but the number of the last event */
    int limit;
    const char *type;          /* NULL: all */
    const char *known_feed;    /* which the numbers must belong to; NULL: any */
    mdl_problem_t *problem;    /* with known_feed */
    const char *feed;          /* out: which the numbers belong to */
    apr_array_header_t *found; /* out: mdl_event_t * */
    apr_int64_t last;          /* out: the number to go on after, at most that of the last event */
    int more;                  /* out: whether there may be more */
} mdl_event_list_t;
apr_status_t mdl_event_list(mdl_db_t *db, apr_pool_t *p, mdl_event_list_t *list);

/** Effect: reads the feed's name, which no other database has but a copy. */
apr_status_t mdl_event_feed(mdl_db_t *db, apr_pool_t *p, const char **feed);

/** Effect: renames the feed after a backup was restored; *feed gets the new name.  Numbers given
    since the backup are given again, and the new name tells clients who have read them. */
apr_status_t mdl_event_renew_feed(mdl_db_t *db, apr_pool_t *p, const char **feed);

/** Reads an event from a row: id, number, type, data, created_at and storefront_order_id, from
    column first on. */
void mdl_event_read(mdl_event_t *event, const mdl_rows_t *row, int first);

/** The id of an event in the API and in webhooks. */
const char *mdl_event_id_text(apr_int64_t id, apr_pool_t *p);

/** Writes an event as the API and webhooks show it. */
void mdl_event_write(mdl_json_t *to, const mdl_event_t *event, apr_pool_t *p);

#endif
