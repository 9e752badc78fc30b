#include "core/shop/staff_address.h"

#include <apr_time.h>

#include "base/mail/mime.h"
#include "core/audit.h"
#include "core/shop/staff_email.h"

const char *const mdl_address_state_names[] = {[MDL_ADDRESS_NONE] = "none",
                                               [MDL_ADDRESS_NOT_ASKED] = "not_asked",
                                               [MDL_ADDRESS_ASKED] = "asked",
                                               [MDL_ADDRESS_CONFIRMED] = "confirmed",
                                               NULL};

mdl_address_state_t mdl_staff_address_state(const char *address, apr_time_t asked_at,
                                            apr_time_t confirmed_at)
{
    if (!mdl_mime_address_valid(address)) {
        return MDL_ADDRESS_NONE;
    }
    return confirmed_at != 0 ? MDL_ADDRESS_CONFIRMED
           : asked_at != 0   ? MDL_ADDRESS_ASKED
                             : MDL_ADDRESS_NOT_ASKED;
}

/* *state is NONE when it is no address of the shop's staff; APR_ENOENT: no such shop. */
static apr_status_t address_read(mdl_db_t *db, mdl_staff_address_t *of, mdl_address_state_t *state,
                                 apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(STAFF_ADDRESS_FIND, .address = of->address, .shop_id = of->shop_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    of->shop_name = MDL_TEXT(row, staff_address_find, name);
    of->shop_domain = MDL_TEXT(row, staff_address_find, domain);
    of->confirmed_at = MDL_INT(row, staff_address_find, confirmed_at);
    *state = MDL_INT(row, staff_address_find, is_reached) > 0
                 ? mdl_staff_address_state(of->address, MDL_INT(row, staff_address_find, asked_at),
                                           of->confirmed_at)
                 : MDL_ADDRESS_NONE;
    return APR_SUCCESS;
}

/* *asked: whether the budgets allowed it. */
static apr_status_t address_ask(mdl_db_t *db, const mdl_staff_address_t *of, int *asked,
                                apr_pool_t *p)
{
    apr_status_t rv = mdl_staff_email_ask(db, of->shop_id, of->address, asked, p);

    return rv == APR_SUCCESS && *asked
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(STAFF_ADDRESS_ASK, .shop_id = of->shop_id,
                                   .address = of->address, .now = apr_time_now()))
               : rv;
}

apr_status_t mdl_staff_address_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                   mdl_address_state_t *state, apr_pool_t *p)
{
    mdl_staff_address_t of = {.shop_id = shop_id, .address = address};
    int asked = 0;
    apr_status_t rv = address_read(db, &of, state, p);

    if (rv == APR_SUCCESS && *state == MDL_ADDRESS_NOT_ASKED) {
        rv = address_ask(db, &of, &asked, p);
        *state = asked ? MDL_ADDRESS_ASKED : MDL_ADDRESS_NOT_ASKED;
    }
    return rv;
}

apr_status_t mdl_staff_address_forget(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                      apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(STAFF_ADDRESS_FORGET, .shop_id = shop_id, .address = address));
}

apr_status_t mdl_staff_address_ask_again(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_ask_t *ask)
{
    mdl_staff_address_t of = {.shop_id = ask->shop_id, .address = ask->address};
    mdl_address_state_t state = MDL_ADDRESS_NONE;
    int asked;
    apr_status_t rv = address_read(db, &of, &state, p);

    if (rv == APR_ENOENT || (rv == APR_SUCCESS && state == MDL_ADDRESS_NONE)) {
        return mdl_problem_set(ask->problem, 404, "not_found",
                               "That is no address of the shop or its staff.");
    }
    if (rv == APR_SUCCESS && state == MDL_ADDRESS_CONFIRMED) {
        return mdl_problem_set(ask->problem, 409, "address_confirmed",
                               "This address is confirmed already.");
    }
    if (rv != APR_SUCCESS || (rv = address_ask(db, &of, &asked, p)) != APR_SUCCESS || asked) {
        return rv;
    }
    return mdl_problem_set(ask->problem, 429, "too_many_confirmations",
                           "An address is asked to confirm 3 times a day at most, and a shop asks "
                           "10 times a day at most. Try again tomorrow.");
}

apr_status_t mdl_staff_address_find(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of)
{
    mdl_address_state_t state;
    apr_status_t rv = address_read(db, of, &state, p);

    return rv == APR_SUCCESS && state == MDL_ADDRESS_NONE ? APR_ENOENT : rv;
}

apr_status_t mdl_staff_address_confirm(mdl_db_t *db, apr_pool_t *p, mdl_staff_address_t *of)
{
    mdl_audit_t audit = {.shop_id = of->shop_id,
                         .noun = "member",
                         .noun_id = of->address,
                         .action = "confirmed",
                         .via = MDL_VIA_SETTINGS,
                         .user = of->address};
    apr_status_t rv = mdl_staff_address_find(db, p, of);

    if (rv != APR_SUCCESS || of->confirmed_at != 0) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(STAFF_ADDRESS_CONFIRM, .shop_id = of->shop_id, .address = of->address,
                           .now = apr_time_now()));
    return rv == APR_SUCCESS ? mdl_audit_add(db, &audit, p) : rv;
}
