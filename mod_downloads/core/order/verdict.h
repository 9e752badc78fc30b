/*
 * Can this customer download?  The answer that the checks of a diagnosis give together, the one
 * that explains it best, and what the shop's staff can do about it.
 */
#ifndef MDL_CORE_ORDER_VERDICT_H
#define MDL_CORE_ORDER_VERDICT_H

#include "core/order/diagnosis.h"

/** From the best to the worst. */
typedef enum {
    MDL_OUTCOME_YES,
    MDL_OUTCOME_PARTLY, /* something is missing, or late */
    MDL_OUTCOME_NO
} mdl_outcome_t;
extern const char *const mdl_outcome_names[];

typedef enum {
    MDL_REMEDY_NONE, /* none that an order offers */
    MDL_REMEDY_APPROVE,
    MDL_REMEDY_RESTORE,
    MDL_REMEDY_EXTEND,  /* give days */
    MDL_REMEDY_GRANT,   /* give downloads */
    MDL_REMEDY_ADDRESS, /* send the email to another address */
    MDL_REMEDY_SEND     /* send it to the customer's */
} mdl_remedy_t;
extern const char *const mdl_remedy_names[];

typedef struct {
    mdl_outcome_t outcome;
    mdl_check_name_t about; /* the check that says why; MDL_CHECKS: none has to, or the operator
                               blocks the shop */
    mdl_remedy_t remedy;
} mdl_verdict_t;

/** Judges the diagnosis of an order. */
mdl_verdict_t mdl_verdict_of(const mdl_order_t *order, const mdl_diagnosis_t *diagnosis);

#endif
