/*
 * Whether a customer may have something of an order now, and if not, why.
 */
#ifndef MDL_CORE_DOWNLOAD_ENTITLEMENT_H
#define MDL_CORE_DOWNLOAD_ENTITLEMENT_H

#include <apr_time.h>

typedef enum {
    MDL_ENTITLEMENT_OK,
    MDL_ENTITLEMENT_HELD, /* these four: the order, or what was bought, is not open */
    MDL_ENTITLEMENT_REJECTED,
    MDL_ENTITLEMENT_REVOKED,
    MDL_ENTITLEMENT_EXPIRED,
    MDL_ENTITLEMENT_NOT_READY, /* these three: the file is being prepared, its import failed, no
                              download is left */
    MDL_ENTITLEMENT_FAILED,
    MDL_ENTITLEMENT_EXHAUSTED,
    MDL_ENTITLEMENT_GONE,      /* these four are a link's: no such file in the order any more */
    MDL_ENTITLEMENT_LINK_OLD,  /* it was not used in time, or its session is over */
    MDL_ENTITLEMENT_CAPPED,    /* it has sent its bytes too often */
    MDL_ENTITLEMENT_CROWDED,   /* too many parts of it are being sent at once */
    MDL_ENTITLEMENT_UNSETTLED, /* what it sent a moment ago is still being counted: ask again soon
                                */
    MDL_ENTITLEMENTS
} mdl_entitlement_t;

/** What the templates call each of them; NULL for OK and UNSETTLED, which no customer sees. */
extern const char *const mdl_entitlement_names[MDL_ENTITLEMENTS];

/** What it depends on; what is left out is not asked. */
typedef struct {
    const char *access_status; /* of the order */
    const char *assignment_status;
    apr_time_t expires_at; /* of the assignment; 0: never */
    const char *asset_status;
    int downloads_used;
    int download_limit; /* with what was granted extra; 0: unlimited */
} mdl_entitlement_facts_t;

/** One of the first eight. */
mdl_entitlement_t mdl_entitlement_of(const mdl_entitlement_facts_t *facts, apr_time_t now);

#endif
