/*
 * The first page of a shop: how it stands, and what is to be done first.
 */
#ifndef MDL_SETTINGS_OVERVIEW_H
#define MDL_SETTINGS_OVERVIEW_H

#include "settings/visit.h"

int mdl_overview_show(mdl_visit_t *visit);

#endif
