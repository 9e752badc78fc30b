#include "core/download/entitlement.h"

#include <string.h>

const char *const mdl_entitlement_names[MDL_ENTITLEMENTS] = {
    [MDL_ENTITLEMENT_HELD] = "held",           [MDL_ENTITLEMENT_REJECTED] = "rejected",
    [MDL_ENTITLEMENT_REVOKED] = "revoked",     [MDL_ENTITLEMENT_EXPIRED] = "expired",
    [MDL_ENTITLEMENT_NOT_READY] = "preparing", [MDL_ENTITLEMENT_FAILED] = "failed",
    [MDL_ENTITLEMENT_EXHAUSTED] = "exhausted", [MDL_ENTITLEMENT_GONE] = "file_gone",
    [MDL_ENTITLEMENT_LINK_OLD] = "link_old",   [MDL_ENTITLEMENT_CAPPED] = "capped",
    [MDL_ENTITLEMENT_CROWDED] = "crowded"};

static int entitlement_differs(const char *status, const char *from)
{
    return status != NULL && strcmp(status, from) != 0;
}

static int is(const char *status, const char *other)
{
    return status != NULL && strcmp(status, other) == 0;
}

mdl_entitlement_t mdl_entitlement_of(const mdl_entitlement_facts_t *facts, apr_time_t now)
{
    if (is(facts->access_status, "held")) {
        return MDL_ENTITLEMENT_HELD;
    }
    if (is(facts->access_status, "rejected")) {
        return MDL_ENTITLEMENT_REJECTED;
    }
    if (entitlement_differs(facts->access_status, "active") ||
        entitlement_differs(facts->assignment_status, "active")) {
        return MDL_ENTITLEMENT_REVOKED;
    }
    if (facts->expires_at != 0 && facts->expires_at <= now) {
        return MDL_ENTITLEMENT_EXPIRED;
    }
    if (is(facts->asset_status, "failed")) {
        return MDL_ENTITLEMENT_FAILED;
    }
    if (entitlement_differs(facts->asset_status, "ready")) {
        return MDL_ENTITLEMENT_NOT_READY;
    }
    return facts->download_limit > 0 && facts->downloads_used >= facts->download_limit
               ? MDL_ENTITLEMENT_EXHAUSTED
               : MDL_ENTITLEMENT_OK;
}
