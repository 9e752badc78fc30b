/*
 * A customer asks the shop for help with an order: once until the shop has answered, three times in
 * a month.  A request lapses after 14 days.  All of these times are by the database's clock.
 */
#ifndef MDL_CORE_ORDER_HELP_H
#define MDL_CORE_ORDER_HELP_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "core/order/diagnosis.h"

#define MDL_HELP_MONTH_MAX 3    /* requests of an order in a month */
#define MDL_HELP_SHOP_MAX  1000 /* requests of a shop that wait for its answer */

typedef enum {
    MDL_HELP_IS_ASKED,  /* by this request, or since an earlier one */
    MDL_HELP_TOO_OFTEN, /* the order has asked too often, or too many others ask the shop */
    MDL_HELP_IS_OFF,    /* the shop does not want to be asked */
    MDL_HELP_NO_ORDER
} mdl_help_outcome_t;

/** Asks for help with an order.  Repeated within ten minutes of a grant, it asks nothing if nothing
    is wrong any more. */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *finding;
    int needed;                 /* mdl_help_needed, while the order is locked */
    int only_ended;             /* mdl_help_only_ended, likewise */
    mdl_help_outcome_t outcome; /* out */
    int by_itself; /* out: whether this request may be granted without the shop, which is told then
                      by its event alone */
} mdl_help_ask_t;
apr_status_t mdl_help_ask(mdl_db_t *db, apr_pool_t *p, mdl_help_ask_t *ask);

/** A request, as the shop sees it. */
typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    const char *order_name; /* as the shop calls it, or NULL */
    const char *finding;    /* when it was asked */
    mdl_help_state_t state;
    const char *answer;     /* or NULL, like what follows */
    const char *decided_by; /* the member; NULL also: an API key, or granted by itself */
    apr_time_t asked_at;
    apr_time_t decided_at; /* 0: it waits, or lapsed */
} mdl_help_request_t;

/** Reads a request of a shop; APR_ENOENT: there is none. */
apr_status_t mdl_help_find(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id,
                           mdl_help_request_t *request, apr_pool_t *p);

/** Reads the newest request for help with an order; APR_ENOENT: there is none. */
apr_status_t mdl_help_find_newest(mdl_db_t *db, apr_int64_t order_id, mdl_help_request_t *request,
                                  apr_pool_t *p);

/** Refuses with 404 help_request_not_found. */
apr_status_t mdl_help_refuse_unknown(mdl_problem_t *problem);

/** Effect: reads a request of a shop into ref->entity.  Refused: 404 help_request_not_found. */
apr_status_t mdl_help_get(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: reads a page of a shop's requests (mdl_help_request_t *). */
typedef struct {
    mdl_list_page_t page;
    int waiting; /* only those that wait for the shop's answer */
} mdl_help_list_t;
apr_status_t mdl_help_list(mdl_db_t *db, apr_pool_t *p, mdl_help_list_t *list);

/** Reads the newest requests (mdl_help_request_t) that wait for a shop's answer, up to limit. */
apr_status_t mdl_help_find_waiting(mdl_db_t *db, apr_int64_t shop_id, int limit,
                                   apr_array_header_t **requests, apr_pool_t *p);

/** Reads a row that has help_columns, those of help_waiting. */
void mdl_help_of_row(mdl_help_request_t *request, const mdl_rows_t *row);

/** Reads into an order what its page has of its newest request; asked_at 0: there is none. */
apr_status_t mdl_help_read(mdl_db_t *db, apr_int64_t order_id, mdl_help_t *help, apr_pool_t *p);

/** Grants a request that waits for the shop's answer, if there is one.  user: the member who gave
   the customer what was missing, or NULL. */
apr_status_t mdl_help_grant(mdl_db_t *db, apr_int64_t order_id, const char *user, apr_pool_t *p);

/** Refuses it.  answer: what the customer reads, or NULL. */
apr_status_t mdl_help_refuse(mdl_db_t *db, apr_int64_t order_id, const char *answer,
                             const char *user, apr_pool_t *p);

/** What a customer who has the page needs help with: the code of the first failure from the page to
    the file, else of the last warning there; "none". */
const char *mdl_help_finding(const mdl_diagnosis_t *diagnosis);

/** Whether a request waits for the shop's answer. */
int mdl_help_waits(const mdl_help_t *help);

/** Whether what an order should give is not to be had at this time for one reason alone: its
    downloads are used up, or its days are over. */
int mdl_help_only_ended(const mdl_order_t *order, apr_time_t now);

/** Whether something that an order should give is not to be had at this time. */
int mdl_help_needed(const mdl_order_t *order, apr_time_t now);

#endif
