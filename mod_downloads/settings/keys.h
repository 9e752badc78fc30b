/*
 * The tab of API keys: the base address, the keys of a shop, a new one, whose token is shown once,
 * and how one is revoked.
 */
#ifndef MDL_SETTINGS_KEYS_H
#define MDL_SETTINGS_KEYS_H

#include "settings/visit.h"

int mdl_keys_show(mdl_visit_t *visit);

/** The fields name, scope ("full" or "read") and expires, which is empty or a number of days.  The
    answer has the token; nothing keeps it, so a form that is sent again shows it no more. */
int mdl_keys_create(mdl_visit_t *visit);

/** Asks whether the key that the path names is to be revoked; the form there revokes it. */
int mdl_keys_ask(mdl_visit_t *visit);
int mdl_keys_revoke(mdl_visit_t *visit);

#endif
