/*
 * A webhook endpoint: a URL to which a shop's system has its events sent (contract, section 11;
 * The Standard Webhooks specification, https://www.standardwebhooks.com).  What is sent to it is in
 * webhook_delivery.h.
 *
 * Each has one job for as long as it exists, which sends what is due: so no endpoint, however slow,
 * takes more of the background process than that.
 */
#ifndef MDL_CORE_SHOP_WEBHOOK_H
#define MDL_CORE_SHOP_WEBHOOK_H

#include "base/crypto.h"
#include "core/entity_ref.h"
#include "core/list_page.h"
#include "core/settings/settings.h"
#include "core/shop/event.h"
#include "db/db.h"

#define MDL_WEBHOOKS_MAX        10   /* of a shop */
#define MDL_WEBHOOK_URL_MAX     2048 /* characters */
#define MDL_WEBHOOK_TEXT_MAX    255  /* characters of a description */
#define MDL_WEBHOOK_SECRET_SIZE 32   /* bytes */

/** How long a secret that was replaced signs as well. */
#define MDL_WEBHOOK_OLD_SECRET apr_time_from_sec(24 * 3600)

typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    const char *job_id;
    const char *url;
    const char *description; /* or NULL */
    const char *types;       /* a JSON array as text; NULL: all */
    int is_active;
    apr_time_t failing_since; /* 0: the last attempt was a success, or there was none */
    apr_time_t disabled_at;   /* by the service, after it had failed for days; 0: it was not */
    apr_time_t old_until;     /* as long as the former secret signs, too; 0: there is none */
    apr_time_t created_at;
    apr_time_t updated_at;
    const char *secret; /* "whsec_…"; NULL unless it was made just now */
} mdl_webhook_t;

/** Where requests to a URL may go: to its host alone, by https at a public address, or as
    settings->webhook allows besides; in time and size a webhook's. */
const mdl_http_policy_t *mdl_webhook_policy(const mdl_settings_t *settings, const char *url,
                                            apr_pool_t *p);

/** Whether a URL can be an endpoint's; the rule is how a sentence about one that can't goes on. */
#define MDL_WEBHOOK_URL_RULE                                                                       \
    "must be an absolute https URL with the name of a host, without user, password or fragment, "  \
    "and with no port but those that the operator allows."
int mdl_webhook_url_valid(const mdl_settings_t *settings, const char *url, apr_pool_t *p);

/** Argument of create, change and rotate.  These, find, delete and test are refused with 404
    webhook_endpoint_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_webhook_t */
    const char *url;
    int set_description;
    const char *description;
    int set_types;
    const char *types;
    int is_active;              /* -1: as it is */
    const mdl_secret_t *secret; /* the server's */
} mdl_webhook_edit_t;

/** Makes an endpoint, its secret and its job.  Refused: 422 too_many_webhook_endpoints. */
apr_status_t mdl_webhook_create(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Changes the members that are given.  What waits is sent on once the endpoint is active. */
apr_status_t mdl_webhook_change(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Gives an endpoint a new secret.  The former one signs as well for MDL_WEBHOOK_OLD_SECRET. */
apr_status_t mdl_webhook_rotate(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads an endpoint. */
apr_status_t mdl_webhook_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect on an mdl_entity_ref_t: nothing more is sent to the endpoint. */
apr_status_t mdl_webhook_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect that reads a page (mdl_list_page_t) of mdl_webhook_t. */
apr_status_t mdl_webhook_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

/** Effect: has an active endpoint sent an event of its own.  Refused: 409
 * webhook_endpoint_inactive.
 */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_webhook_t */
    mdl_event_t *event;   /* out: without a number yet */
} mdl_webhook_test_t;
apr_status_t mdl_webhook_test(mdl_db_t *db, apr_pool_t *p, mdl_webhook_test_t *test);

/** Refuses what an endpoint that is not active can't do. */
apr_status_t mdl_webhook_check_active(const mdl_entity_ref_t *ref);

/** Opens a sealed secret of an endpoint: MDL_WEBHOOK_SECRET_SIZE bytes.  APR_EINVAL when another
    secret of the server has sealed it. */
apr_status_t mdl_webhook_secret_open(const mdl_secret_t *secret, apr_int64_t id, const char *sealed,
                                     const char **bytes, apr_pool_t *p);

/** Effect: seals anew what an older secret of the server has sealed. */
apr_status_t mdl_webhook_renew(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p);

#endif
