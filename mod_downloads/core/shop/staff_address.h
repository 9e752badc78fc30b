/*
 * An address of a shop's staff: a member's own, an owner's name, if it is an address and the owner
 * has no other, or the shop's own.  Until its reader confirms it, by a signed link that was sent to
 * it, it gets no other email of the shop (contract, section 11).  A confirmation is only valid for
 * one shop.
 */
#ifndef MDL_CORE_SHOP_STAFF_ADDRESS_H
#define MDL_CORE_SHOP_STAFF_ADDRESS_H

#include "core/problem.h"
#include "db/db.h"

/** How long the link is valid. */
#define MDL_STAFF_ADDRESS_EXPIRES apr_time_from_sec(7 * 86400)

typedef enum {
    MDL_ADDRESS_NONE,      /* no address, or not one that gets emails */
    MDL_ADDRESS_NOT_ASKED, /* the day's budgets did not allow to ask, or the address is older than
                              this rule */
    MDL_ADDRESS_ASKED,
    MDL_ADDRESS_CONFIRMED
} mdl_address_state_t;
extern const char *const mdl_address_state_names[];

/** The state of what may be an address, by when it was asked and confirmed (0: never). */
mdl_address_state_t mdl_staff_address_state(const char *address, apr_time_t asked_at,
                                            apr_time_t confirmed_at);

/** Asks to confirm an address of the shop's staff, unless it was asked before or the budgets
    are used up; *state gets the state after that. */
apr_status_t mdl_staff_address_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                   mdl_address_state_t *state, apr_pool_t *p);

/** Deletes what is known of an address, unless a member or the shop still has it. */
apr_status_t mdl_staff_address_forget(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                      apr_pool_t *p);

/** Effect: asks again.  Refused: 404 when it is no address of the shop's staff, 409 when it is
    confirmed, 429 when the day's budget of the address or the shop is used up. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;
    mdl_problem_t *problem;
} mdl_staff_address_ask_t;
apr_status_t mdl_staff_address_ask_again(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_ask_t *ask);

/** What a confirmation link is for. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;
    const char *shop_name; /* out, like what follows */
    const char *shop_domain;
    apr_time_t confirmed_at; /* 0: not yet */
} mdl_staff_address_t;

/** Effect: reads it; APR_ENOENT when it is no longer an address of the shop's staff. */
apr_status_t mdl_staff_address_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of);

/** Effect: the same, and confirms the address, with an audit entry, unless it was confirmed. */
apr_status_t mdl_staff_address_confirm(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of);

#endif
