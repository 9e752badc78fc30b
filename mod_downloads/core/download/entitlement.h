/*
 * Whether a customer may have something of an order now, and if not, why.
 */
#ifndef MDL_CORE_DOWNLOAD_ENTITLEMENT_H
#define MDL_CORE_DOWNLOAD_ENTITLEMENT_H

#include <apr_time.h>

typedef enum {
    MDL_VERDICT_OK,
    MDL_VERDICT_HELD, /* these four: the order, or what was bought, is not open */
    MDL_VERDICT_REJECTED,
    MDL_VERDICT_REVOKED,
    MDL_VERDICT_EXPIRED,
    MDL_VERDICT_NOT_READY, /* these three: the file is being prepared, its import failed, no
                              download is left */
    MDL_VERDICT_FAILED,
    MDL_VERDICT_EXHAUSTED,
    MDL_VERDICT_GONE,     /* these four are a link's: no such file in the order any more */
    MDL_VERDICT_LINK_OLD, /* it was not used in time, or its session is over */
    MDL_VERDICT_CAPPED,   /* it has sent its bytes too often */
    MDL_VERDICT_CROWDED   /* too many parts of it are being sent at once */
} mdl_verdict_t;

/** What it depends on; what is left out is not asked. */
typedef struct {
    const char *access_status; /* of the order */
    const char *assignment_status;
    apr_time_t expires_at; /* of the assignment; 0: never */
    const char *asset_status;
    int downloads_used;
    int download_limit; /* with what was granted extra; 0: unlimited */
} mdl_claim_t;

/** One of the first eight. */
mdl_verdict_t mdl_verdict_of(const mdl_claim_t *claim, apr_time_t now);

#endif
