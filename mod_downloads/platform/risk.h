/*
 * The level of an order's risk: a storefront's rating, the fraud check's result, or the level at
 * which a shop holds orders.
 */
#ifndef MDL_PLATFORM_RISK_H
#define MDL_PLATFORM_RISK_H

typedef enum { MDL_RISK_NONE, MDL_RISK_LOW, MDL_RISK_MEDIUM, MDL_RISK_HIGH } mdl_risk_t;
extern const char *const mdl_risk_names[];

#endif
