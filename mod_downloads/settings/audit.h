/*
 * The audit: what was changed, by whom and when.
 */
#ifndef MDL_SETTINGS_AUDIT_H
#define MDL_SETTINGS_AUDIT_H

#include "settings/visit.h"

/** The newest entries of the shop of the visit, or without one of all shops.  Parameters: noun and
    who, of which each may be missing, and before. */
int mdl_audit_show(mdl_visit_t *visit);

#endif
