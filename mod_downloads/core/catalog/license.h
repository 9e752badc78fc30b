/*
 * License keys: a tag is a named stock of keys; a claim says how many keys of a tag an assignment
 * must get and has got.  Claims of older assignments get keys first, and only while the assignment
 * and its order are active.
 *
 * A key stays with its assignment until that is revoked or gets a lower quantity.  Then it goes
 * back to the stock if its tag reclaims keys.  If not, a revoked assignment keeps it, and a key
 * above the quantity is withdrawn: nobody sees it until the quantity is raised again.
 *
 * A tag's counts change with its keys in one transaction, and whoever takes, adds or removes keys
 * of a tag holds its row from before the first key to the commit.  So assignments that come at once
 * share exactly the keys there are.  Several tags are locked in ascending order of their ids.
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
    apr_int64_t available;           /* keys that nobody has */
    apr_int64_t assigned;            /* keys given away, those that were withdrawn included */
    apr_int64_t low_stock_threshold; /* -1: none */
    apr_time_t created_at;
    apr_time_t updated_at; /* of the members that can be changed; keys come and go without it */
    int reclaims;          /* keys go back to the stock */
} mdl_license_tag_t;

/** Argument of create and change.  These two, find, lock and delete are refused with 404
    license_key_tag_not_found. */
typedef struct {
    mdl_entity_ref_t ref;            /* entity: mdl_license_tag_t */
    const char *name;                /* NULL: as it was */
    int set_threshold;               /* of change: whether low_stock_threshold counts */
    apr_int64_t low_stock_threshold; /* -1: none */
    int reclaims;                    /* -1: as it was, or not */
} mdl_license_tag_edit_t;

/** Makes a tag without keys. */
apr_status_t mdl_license_tag_create(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit);

apr_status_t mdl_license_tag_change(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads a tag. */
apr_status_t mdl_license_tag_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Reads a tag, and locks it until the transaction ends. */
apr_status_t mdl_license_tag_lock(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/**
 * Effect on an mdl_entity_ref_t; the keys that were given stay with their assignments.  Refused:
 * 409 license_key_tag_in_use with the mappings that hold it and the orders that wait for its keys.
 */
apr_status_t mdl_license_tag_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect that reads a page (mdl_list_page_t) of mdl_license_tag_t. */
apr_status_t mdl_license_tag_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

/**
 * Effect: adds keys to a tag, sealed, gives them to the claims that wait, and adds an entry
 * license_keys_assigned to the timeline of each order that got some.  Refused: 404.  APR_EINVAL
 * when the secret does not open the data key.
 */
typedef struct {
    mdl_entity_ref_t ref; /* the tag; entity: mdl_license_tag_t, as it was before */
    const char *key_id;   /* the API key that asks; NULL: the service */
    const mdl_secret_t *secret;
    const mdl_json_t *keys; /* an array of strings */
    apr_int64_t added;      /* out */
    apr_int64_t duplicates; /* out: keys that the tag had, or that stand twice in the array */
} mdl_license_add_t;
apr_status_t mdl_license_add(mdl_db_t *db, apr_pool_t *p, mdl_license_add_t *add);

/** Tells of a tag whose stock has come down to its threshold: an event and, once a day at most, an
    email to the shop's staff. */
apr_status_t mdl_license_warn(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p);

/** Asks for the tags of some mappings (apr_int64_t) and those that an order waits for, and locks
   them until the transaction ends.  To be called before the order's assignments are made. */
apr_status_t mdl_license_ask_lock(mdl_db_t *db, apr_int64_t order_id,
                                  const apr_array_header_t *mapping_ids, mdl_rows_t **rows,
                                  apr_pool_t *p);

/** Reads the ids of the tags (apr_int64_t): where there are none, neither mdl_license_want nor
    mdl_license_fill_order has anything to do. */
apr_array_header_t *mdl_license_read_lock(mdl_rows_t *rows, apr_pool_t *p);

/**
 * Notes that a new assignment is to have quantity keys of each tag of its mapping that is among
 * those locked.  *wanted gets how many keys these are in all.  Gives none: mdl_license_fill_order
 * does, once all assignments of a request are made.
 */
apr_status_t mdl_license_want(mdl_db_t *db, apr_int64_t assignment_id, apr_int64_t mapping_id,
                              int quantity, const apr_array_header_t *tags, apr_int64_t *wanted,
                              apr_pool_t *p);

/**
 * Sets how many keys of each of its tags an assignment is to have, 1 or more, and takes those above
 * that from it, the last ones first; keys that were withdrawn from it come back.  Gives no others:
 * mdl_license_fill_order does.  key_id is as in mdl_license_add_t.
 */
apr_status_t mdl_license_set_quantity(mdl_db_t *db, apr_int64_t assignment_id, int quantity,
                                      const char *key_id, apr_pool_t *p);

/** Takes all keys of tags that reclaim them from assignments (apr_int64_t) that are closed.
 *reclaimed gets their number. */
apr_status_t mdl_license_reclaim(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                 const char *key_id, apr_int64_t *reclaimed, apr_pool_t *p);

/**
 * Gives keys to the claims of an order that wait, as far as there are keys; nothing when order or
 * assignment is not active.  To be called in the transaction that assigns, restores or approves,
 * after its changes.  *given gets the number of keys; no entry is added to the timeline.
 */
apr_status_t mdl_license_fill_order(mdl_db_t *db, apr_int64_t order_id, apr_int64_t *given,
                                    apr_pool_t *p);

#endif
