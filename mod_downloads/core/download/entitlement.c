#include "core/download/entitlement.h"

#include <string.h>

static int differs(const char *status, const char *from)
{
    return status != NULL && strcmp(status, from) != 0;
}

static int is(const char *status, const char *other)
{
    return status != NULL && strcmp(status, other) == 0;
}

mdl_verdict_t mdl_verdict_of(const mdl_claim_t *claim, apr_time_t now)
{
    if (is(claim->access_status, "held")) {
        return MDL_VERDICT_HELD;
    }
    if (is(claim->access_status, "rejected")) {
        return MDL_VERDICT_REJECTED;
    }
    if (differs(claim->access_status, "active") || differs(claim->assignment_status, "active")) {
        return MDL_VERDICT_REVOKED;
    }
    if (claim->expires_at != 0 && claim->expires_at <= now) {
        return MDL_VERDICT_EXPIRED;
    }
    if (is(claim->asset_status, "failed")) {
        return MDL_VERDICT_FAILED;
    }
    if (differs(claim->asset_status, "ready")) {
        return MDL_VERDICT_NOT_READY;
    }
    return claim->download_limit > 0 && claim->downloads_used >= claim->download_limit
               ? MDL_VERDICT_EXHAUSTED
               : MDL_VERDICT_OK;
}
