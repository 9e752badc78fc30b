/*
 * How risky an order looks: a storefront's rating of it, the level of the fraud check, and the
 * level at which a shop holds its orders.
 */
#ifndef MDL_PLATFORM_RISK_H
#define MDL_PLATFORM_RISK_H

typedef enum { MDL_RISK_NONE, MDL_RISK_LOW, MDL_RISK_MEDIUM, MDL_RISK_HIGH } mdl_risk_t;
extern const char *const mdl_risk_names[];

#endif
