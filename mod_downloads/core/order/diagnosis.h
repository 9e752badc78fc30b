/*
 * Why can't this customer download?  Eight checks, from the customer's email address to the bytes
 * of the file.
 */
#ifndef MDL_CORE_ORDER_DIAGNOSIS_H
#define MDL_CORE_ORDER_DIAGNOSIS_H

#include "base/text/json.h"
#include "core/order/order.h"
#include "storage/storage.h"

typedef enum {
    MDL_CHECK_RECIPIENT,
    MDL_CHECK_EMAIL,
    MDL_CHECK_PAGE,
    MDL_CHECK_MAPPING,
    MDL_CHECK_FRAUD,
    MDL_CHECK_ACCESS,
    MDL_CHECK_ALLOWANCE,
    MDL_CHECK_FILE,
    MDL_CHECKS
} mdl_check_name_t;

extern const char *const mdl_check_names[MDL_CHECKS];

/** A warning concerns part of the order, or something that will pass by itself.  A failure affects
    everything that the check is about. */
typedef enum { MDL_CHECK_OK, MDL_CHECK_WARN, MDL_CHECK_FAIL } mdl_check_status_t;

typedef struct {
    mdl_check_status_t status;
    const char *message; /* a sentence or two */
    const char *finding; /* the code of message, such as "email_sent", to translate it by */
    mdl_json_t *facts;   /* an object with the values in message: strings or null; "at" is a date
                            (base/text/present.h), or null */
} mdl_check_t;

typedef struct {
    mdl_check_t checks[MDL_CHECKS];
    mdl_check_name_t first_failure; /* MDL_CHECKS: none */
} mdl_diagnosis_t;

/** Checks an order that mdl_order_find read with_lookup, and whether the storage has the bytes of
    its files; storage is NULL when it can't be opened. */
const mdl_diagnosis_t *mdl_diagnosis_make(const mdl_order_t *order, const mdl_storage_t *storage,
                                          apr_pool_t *p);

#endif
