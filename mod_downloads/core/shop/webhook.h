/*
 * A webhook endpoint: a URL that a shop's events are sent to (contract, section 11; the Standard
 * Webhooks specification, https://www.standardwebhooks.com).  webhook_delivery.h has the
 * deliveries.
 *
 * Each endpoint has one job as long as it exists, which sends what is due: so a slow endpoint takes
 * no more of the background process than one job.
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

/** How long a replaced secret still signs, too. */
#define MDL_WEBHOOK_OLD_SECRET apr_time_from_sec(24 * 3600)

typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    const char *job_id;
    const char *url;
    const char *description; /* or NULL */
    const char *types;       /* a JSON array as text; NULL: all */
    int is_active;
    apr_time_t failing_since; /* 0: the last attempt succeeded, or there was none */
    apr_time_t disabled_at;   /* by the service, after failing for days; 0: it was not */
    apr_time_t old_until;     /* until then the previous secret signs, too; 0: there is none */
    apr_time_t created_at;
    apr_time_t updated_at;
    const char *secret;    /* "whsec_…"; NULL unless just made */
    const char *shop_name; /* only set by mdl_webhook_failing */
} mdl_webhook_t;

/** Where requests to a URL may go: only to its host, by https at a public address, or as
    settings->webhook allows besides; with the time and size limits of webhooks. */
const mdl_http_policy_t *mdl_webhook_policy(const mdl_settings_t *settings, const char *url,
                                            apr_pool_t *p);

/** Whether a URL can be an endpoint's.  The rule ends a sentence about a URL that can't. */
#define MDL_WEBHOOK_URL_RULE                                                                       \
    "must be an absolute https URL with the name of a host, without user, password or fragment, "  \
    "and with no port but those that the operator allows."
int mdl_webhook_url_valid(const mdl_settings_t *settings, const char *url, apr_pool_t *p);

/** Argument of create, change and rotate.  Change, rotate, find, delete and test are refused with
    404 webhook_endpoint_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_webhook_t */
    const char *url;
    int set_description;
    const char *description;
    int set_types;
    const char *types;
    int is_active;              /* -1: unchanged */
    const mdl_secret_t *secret; /* the server's */
} mdl_webhook_edit_t;

/** Makes an endpoint, its secret and its job.  Refused: 422 too_many_webhook_endpoints. */
apr_status_t mdl_webhook_create(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Changes the given members.  Pending deliveries are sent once the endpoint is active. */
apr_status_t mdl_webhook_change(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Gives an endpoint a new secret.  The old secret signs, too, for MDL_WEBHOOK_OLD_SECRET. */
apr_status_t mdl_webhook_rotate(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads an endpoint. */
apr_status_t mdl_webhook_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect on an mdl_entity_ref_t: deletes an endpoint; nothing more is sent to it. */
apr_status_t mdl_webhook_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: reads a page (mdl_list_page_t) of mdl_webhook_t. */
apr_status_t mdl_webhook_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

/** Effect: reads endpoints of all shops that fail, or were switched off for it, the newest first.
 */
typedef struct {
    int limit;
    apr_array_header_t *found; /* out: mdl_webhook_t * */
} mdl_webhook_failing_t;
apr_status_t mdl_webhook_failing(mdl_db_t *db, apr_pool_t *p, mdl_webhook_failing_t *failing);

/** Effect: sends a test event to an active endpoint.  Refused: 409 webhook_endpoint_inactive. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_webhook_t */
    mdl_event_t *event;   /* out: without a number yet */
} mdl_webhook_test_t;
apr_status_t mdl_webhook_test(mdl_db_t *db, apr_pool_t *p, mdl_webhook_test_t *test);

/** Refuses an inactive endpoint: 409 webhook_endpoint_inactive. */
apr_status_t mdl_webhook_check_active(const mdl_entity_ref_t *ref);

/** Opens a sealed secret of an endpoint: MDL_WEBHOOK_SECRET_SIZE bytes.  APR_EINVAL when none of
    the server's secrets has sealed it. */
apr_status_t mdl_webhook_secret_open(const mdl_secret_t *secret, apr_int64_t id, const char *sealed,
                                     const char **bytes, apr_pool_t *p);

/** Effect: seals again what an older secret of the server has sealed. */
apr_status_t mdl_webhook_renew(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p);

#endif
