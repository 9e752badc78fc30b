/*
 * License keys: a tag is a named stock of keys; a claim says how many keys of a tag an assignment
 * must get and has got.  Claims of older assignments are served first.  Claims are served only
 * while the assignment and its order are active.
 *
 * A key stays with its assignment until the assignment is revoked or gets a lower quantity.  Then
 * the key goes back to the stock if its tag reclaims keys.  If not, a revoked assignment keeps the
 * key, and a key above the quantity is withdrawn: nobody sees it until the quantity is raised
 * again.
 *
 * A tag's counts change with its keys in one transaction, and a transaction that takes, adds or
 * removes keys locks the tag's row before the first key.  So concurrent assignments share exactly
 * the keys in stock.  Several tags are locked in ascending order of their ids.
 */
#ifndef MDL_CORE_CATALOG_LICENSE_H
#define MDL_CORE_CATALOG_LICENSE_H

#include "base/crypto.h"
#include "base/text/json.h"
#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *name;
    apr_int64_t available;           /* keys in stock */
    apr_int64_t assigned;            /* keys given away, withdrawn keys included */
    apr_int64_t low_stock_threshold; /* -1: none */
    apr_time_t created_at;
    apr_time_t updated_at; /* of the members that can be changed; not moved by keys */
    int reclaims;          /* whether keys go back to the stock */
} mdl_license_tag_t;

/** Argument of create and change.  All functions but create refuse with 404
    license_key_tag_not_found. */
typedef struct {
    mdl_entity_ref_t ref;            /* entity: mdl_license_tag_t */
    const char *name;                /* NULL: unchanged */
    int set_threshold;               /* of change: whether low_stock_threshold is given */
    apr_int64_t low_stock_threshold; /* -1: none */
    int reclaims;                    /* -1: unchanged; a new tag does not reclaim */
} mdl_license_tag_edit_t;

/** The largest low_stock_threshold. */
#define MDL_LICENSE_THRESHOLD_MAX 1000000000

/** Makes a tag without keys. */
apr_status_t mdl_license_tag_create(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit);

apr_status_t mdl_license_tag_change(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads a tag. */
apr_status_t mdl_license_tag_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Reads a tag, and locks it until the transaction ends. */
apr_status_t mdl_license_tag_lock(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/**
 * Effect on an mdl_entity_ref_t: deletes a tag; keys given away stay with their assignments.
 * Refused: 409 license_key_tag_in_use with the mappings that hold it and the orders that wait for
 * its keys.
 */
apr_status_t mdl_license_tag_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: reads a page (mdl_list_page_t) of mdl_license_tag_t. */
apr_status_t mdl_license_tag_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

/** What a license key may be: text of that many characters and bytes (a sealed key has to fit into
    an index entry), without control characters. */
#define MDL_LICENSE_KEY_MAX       512
#define MDL_LICENSE_KEY_MAX_BYTES 1024

/** The most keys that are added or made at once. */
#define MDL_LICENSE_KEYS_MAX 10000

/**
 * Effect: adds keys to a tag, sealed, gives them to waiting claims, and adds the entry
 * license_keys_assigned to the timeline of each order that got some.  Refused: 404, and what
 * mdl_license_pattern_check refuses.  APR_EINVAL when the secret does not open the data key.
 */
typedef struct {
    mdl_entity_ref_t ref; /* the tag; entity: mdl_license_tag_t before the effect */
    const char *key_id;   /* the API key that asks; NULL: the service */
    const mdl_secret_t *secret;
    const mdl_json_t *keys; /* an array of strings; NULL: they are made */
    const char *pattern;    /* of keys that are made (license_pattern.h), and their number */
    int count;
    apr_int64_t added;      /* out */
    apr_int64_t duplicates; /* out: keys that the tag had, or repeated in the array */
    apr_int64_t given;      /* out: keys given to orders that waited for some */
} mdl_license_add_t;
apr_status_t mdl_license_add(mdl_db_t *db, apr_pool_t *p, mdl_license_add_t *add);

/** Reports a tag whose stock has fallen to its threshold: adds an event and, once a day at most, an
    email to the shop's staff. */
apr_status_t mdl_license_warn(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p);

/** Asks for the tags of mappings (apr_int64_t) and those that an order waits for, and locks them
    until the end of the transaction.  Called before the order's assignments are made. */
apr_status_t mdl_license_ask_lock(mdl_db_t *db, apr_int64_t order_id,
                                  const apr_array_header_t *mapping_ids, mdl_rows_t **rows,
                                  apr_pool_t *p);

/** Reads the ids of these tags (apr_int64_t).  Without any, mdl_license_want and
    mdl_license_fill_order have nothing to do. */
apr_array_header_t *mdl_license_read_lock(mdl_rows_t *rows, apr_pool_t *p);

/**
 * Claims quantity keys for a new assignment, of each of its mapping's tags that is locked.  *wanted
 * gets the sum.  mdl_license_fill_order gives the keys, once all assignments of a request are made.
 */
apr_status_t mdl_license_want(mdl_db_t *db, apr_int64_t assignment_id, apr_int64_t mapping_id,
                              int quantity, const apr_array_header_t *tags, apr_int64_t *wanted,
                              apr_pool_t *p);

/**
 * Sets how many keys of each of its tags an assignment must get, 1 or more.  Takes surplus keys
 * from it, the last first, or gives withdrawn keys back; mdl_license_fill_order gives new ones.
 * key_id is as in mdl_license_add_t.
 */
apr_status_t mdl_license_set_quantity(mdl_db_t *db, apr_int64_t assignment_id, int quantity,
                                      const char *key_id, apr_pool_t *p);

/** Takes the keys of closed assignments (apr_int64_t) back to those tags that reclaim
    keys; *reclaimed gets their number. */
apr_status_t mdl_license_reclaim(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                 const char *key_id, apr_int64_t *reclaimed, apr_pool_t *p);

/**
 * Gives keys in stock to the waiting claims of an order, where order and assignment are active.
 * Called in the transaction that assigns, restores or approves, after its changes.  *given gets the
 * number of keys; adds no timeline entry.
 */
apr_status_t mdl_license_fill_order(mdl_db_t *db, apr_int64_t order_id, apr_int64_t *given,
                                    apr_pool_t *p);

#endif
