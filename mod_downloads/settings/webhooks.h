/*
 * The tab of webhooks: the endpoints of a shop (core/shop/webhook.h), a new one, and each one's
 * page with what was sent to it.  A secret is shown in the answer to its making alone.
 */
#ifndef MDL_SETTINGS_WEBHOOKS_H
#define MDL_SETTINGS_WEBHOOKS_H

#include "settings/visit.h"

int mdl_webhooks_show(mdl_visit_t *visit);

/** The fields url, description and events, which is "all" or "some"; of some, each type has a field
    of its name. */
int mdl_webhooks_create(mdl_visit_t *visit);

/* Each of these is about the endpoint that the path names. */

/** With its deliveries, the newest first.  Parameter: before. */
int mdl_webhooks_show_one(mdl_visit_t *visit);

/** The fields of a new one, and active, which is there or not. */
int mdl_webhooks_change(mdl_visit_t *visit);

int mdl_webhooks_rotate(mdl_visit_t *visit);
int mdl_webhooks_test(mdl_visit_t *visit);

/** The field delivery. */
int mdl_webhooks_resend(mdl_visit_t *visit);

/** Asks whether it is to be deleted; the form there deletes it. */
int mdl_webhooks_ask(mdl_visit_t *visit);
int mdl_webhooks_delete(mdl_visit_t *visit);

#endif
