#include "core/download/entitlement.h"

#include <string.h>

const char *const mdl_order_access_names[] = {[MDL_ORDER_ACTIVE] = "active",
                                              [MDL_ORDER_HELD] = "held",
                                              [MDL_ORDER_REVOKED] = "revoked",
                                              [MDL_ORDER_REJECTED] = "rejected",
                                              NULL};

const char *const mdl_assignment_status_names[] = {
    [MDL_ASSIGNMENT_ACTIVE] = "active", [MDL_ASSIGNMENT_REVOKED] = "revoked", NULL};

const char *const mdl_entitlement_names[MDL_ENTITLEMENTS] = {
    [MDL_ENTITLEMENT_BLOCKED] = "shop_blocked",  [MDL_ENTITLEMENT_HELD] = "held",
    [MDL_ENTITLEMENT_UNDECLARED] = "undeclared", [MDL_ENTITLEMENT_REJECTED] = "rejected",
    [MDL_ENTITLEMENT_REVOKED] = "revoked",       [MDL_ENTITLEMENT_EXPIRED] = "expired",
    [MDL_ENTITLEMENT_NOT_READY] = "preparing",   [MDL_ENTITLEMENT_FAILED] = "failed",
    [MDL_ENTITLEMENT_RUNNING] = "running",       [MDL_ENTITLEMENT_EXHAUSTED] = "exhausted",
    [MDL_ENTITLEMENT_GONE] = "file_gone",        [MDL_ENTITLEMENT_LINK_OLD] = "link_old",
    [MDL_ENTITLEMENT_CAPPED] = "capped",         [MDL_ENTITLEMENT_CROWDED] = "crowded",
    [MDL_ENTITLEMENT_TOO_OFTEN] = "too_often"};

mdl_entitlement_t mdl_entitlement_of_order(mdl_order_access_t access, int undeclared)
{
    switch (access) {
    case MDL_ORDER_ACTIVE:
        return undeclared ? MDL_ENTITLEMENT_UNDECLARED : MDL_ENTITLEMENT_OK;
    case MDL_ORDER_HELD:
        return MDL_ENTITLEMENT_HELD;
    case MDL_ORDER_REJECTED:
        return MDL_ENTITLEMENT_REJECTED;
    case MDL_ORDER_REVOKED:
        break;
    }
    return MDL_ENTITLEMENT_REVOKED;
}

mdl_entitlement_t mdl_entitlement_of_assignment(mdl_assignment_status_t status,
                                                apr_time_t expires_at, apr_time_t now)
{
    if (status != MDL_ASSIGNMENT_ACTIVE) {
        return MDL_ENTITLEMENT_REVOKED;
    }
    return expires_at != 0 && expires_at <= now ? MDL_ENTITLEMENT_EXPIRED : MDL_ENTITLEMENT_OK;
}

void mdl_allowance_renew(mdl_allowance_t *allowance, const char *sha256, int limit)
{
    int granted_used = limit > 0 && allowance->used > limit ? allowance->used - limit : 0;

    if (sha256 == NULL || strncmp(sha256, allowance->version, strlen(allowance->version)) == 0) {
        return;
    }
    allowance->extra = allowance->extra > granted_used ? allowance->extra - granted_used : 0;
    allowance->used = 0;
}

mdl_entitlement_t mdl_entitlement_of_file(mdl_asset_status_t status, mdl_downloads_t downloads,
                                          int limit)
{
    switch (status) {
    case MDL_ASSET_PENDING:
        return MDL_ENTITLEMENT_NOT_READY;
    case MDL_ASSET_FAILED:
        return MDL_ENTITLEMENT_FAILED;
    case MDL_ASSET_READY:
        break;
    }
    if (limit == 0 || downloads.used - downloads.resting < limit) {
        return MDL_ENTITLEMENT_OK;
    }
    return downloads.running > 0 ? MDL_ENTITLEMENT_RUNNING : MDL_ENTITLEMENT_EXHAUSTED;
}

mdl_entitlement_t mdl_entitlement_of(const mdl_entitlement_facts_t *facts, apr_time_t now)
{
    mdl_entitlement_t entitlement = facts->shop_blocked ? MDL_ENTITLEMENT_BLOCKED
                                                        : mdl_entitlement_of_order(
                                                              facts->access, facts->undeclared);

    if (entitlement == MDL_ENTITLEMENT_OK) {
        entitlement = mdl_entitlement_of_assignment(facts->assignment, facts->expires_at, now);
    }
    return entitlement == MDL_ENTITLEMENT_OK
               ? mdl_entitlement_of_file(facts->asset, facts->downloads, facts->download_limit)
               : entitlement;
}
