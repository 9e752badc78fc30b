/*
 * The first page of a shop: how it stands with it, and what needs somebody.
 */
#ifndef MDL_SETTINGS_OVERVIEW_H
#define MDL_SETTINGS_OVERVIEW_H

#include "settings/visit.h"

int mdl_overview_show(mdl_visit_t *visit);

/** Tries again the import that the path names. */
int mdl_overview_retry(mdl_visit_t *visit);

#endif
