/*
 * An address of a shop's staff: an owner's name that is one, or the shop's own.  Before whoever
 * reads it has confirmed it, by a button behind a signed link that it was sent, it gets no other
 * email of the shop (contract, section 11).  A shop's confirmation counts for no other shop.
 */
#ifndef MDL_CORE_SHOP_STAFF_ADDRESS_H
#define MDL_CORE_SHOP_STAFF_ADDRESS_H

#include "core/problem.h"
#include "db/db.h"

/** For how long the link works. */
#define MDL_STAFF_ADDRESS_EXPIRES apr_time_from_sec(7 * 86400)

typedef enum {
    MDL_ADDRESS_NONE,      /* it is no address, or nobody's who gets emails */
    MDL_ADDRESS_NOT_ASKED, /* the budgets of the day did not allow it, or it was there before */
    MDL_ADDRESS_ASKED,
    MDL_ADDRESS_CONFIRMED
} mdl_address_state_t;
extern const char *const mdl_address_state_names[];

/** The state of what may be an address, by the times at which it was asked and confirmed (0: it was
    not). */
mdl_address_state_t mdl_staff_address_state(const char *address, apr_time_t asked_at,
                                            apr_time_t confirmed_at);

/** Asks an owner's or the shop's own address to be confirmed, unless that was done before or is
    more than the budgets allow; *state is as it is then. */
apr_status_t mdl_staff_address_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                   mdl_address_state_t *state, apr_pool_t *p);

/** Forgets an address unless somebody still has it. */
apr_status_t mdl_staff_address_forget(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                      apr_pool_t *p);

/** Effect: asks once more.  Refused with 404 when it is no address of the shop's staff, 409 when it
    is confirmed, 429 when it, or the shop, was sent as many confirmations as a day allows. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;
    mdl_problem_t *problem;
} mdl_staff_address_ask_t;
apr_status_t mdl_staff_address_ask_again(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_ask_t *ask);

/** What a link stands for. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;
    const char *shop_name; /* out, as what follows */
    const char *shop_domain;
    apr_time_t confirmed_at; /* 0: not yet */
} mdl_staff_address_t;

/** Effect that reads it; APR_ENOENT when it is no address of the shop's staff any more. */
apr_status_t mdl_staff_address_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of);

/** Effect: the same, and confirms it, which its audit notes, unless it was confirmed before. */
apr_status_t mdl_staff_address_confirm(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of);

#endif
