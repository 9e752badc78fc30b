/*
 * Shops: which ones a member may open, and what the operator does with all of them.
 */
#ifndef MDL_SETTINGS_SHOPS_H
#define MDL_SETTINGS_SHOPS_H

#include "settings/visit.h"

/** The shops of which the user is a member, to choose from; leads to the one if it is one, and an
    operator to the list of all. */
int mdl_shops_mine(mdl_visit_t *visit);

/** All shops, and a form to add one, with the fields name, domain and email. */
int mdl_shops_show(mdl_visit_t *visit);
int mdl_shops_add(mdl_visit_t *visit);

/** Approves or suspends the shop of the visit. */
int mdl_shops_approve(mdl_visit_t *visit);
int mdl_shops_suspend(mdl_visit_t *visit);

/** Asks whether the shop is to be blocked, and why. */
int mdl_shops_ask_block(mdl_visit_t *visit);

/** Blocks it, with the field reason, or ends that. */
int mdl_shops_block(mdl_visit_t *visit);
int mdl_shops_unblock(mdl_visit_t *visit);

#endif
