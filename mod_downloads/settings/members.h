/*
 * The members of a shop: who may open its settings, and as what.
 */
#ifndef MDL_SETTINGS_MEMBERS_H
#define MDL_SETTINGS_MEMBERS_H

#include "settings/visit.h"

int mdl_members_show(mdl_visit_t *visit);

/** The fields user and role, which is any but operator; a member who is there gets the role. */
int mdl_members_add(mdl_visit_t *visit);

/** Removes the member of the field user, but not the one who asks. */
int mdl_members_remove(mdl_visit_t *visit);

/** Sends the confirmation of the address in the field user once more: an owner's, or the shop's
    own. */
int mdl_members_ask(mdl_visit_t *visit);

#endif
