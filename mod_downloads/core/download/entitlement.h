/*
 * Whether a customer may have something of an order now, and if not, why; and the states of orders
 * and assignments that decide it.
 */
#ifndef MDL_CORE_DOWNLOAD_ENTITLEMENT_H
#define MDL_CORE_DOWNLOAD_ENTITLEMENT_H

#include <apr_time.h>

#include "core/catalog/asset.h"

/** Access to an order.  core/order/state.h has the events that change it. */
typedef enum {
    MDL_ORDER_ACTIVE,
    MDL_ORDER_HELD,    /* by the fraud check, for the shop to review */
    MDL_ORDER_REVOKED, /* by the shop */
    MDL_ORDER_REJECTED /* by the shop's review */
} mdl_order_access_t;
extern const char *const mdl_order_access_names[];

/** Access to an assignment; it only counts while its order is active. */
typedef enum { MDL_ASSIGNMENT_ACTIVE, MDL_ASSIGNMENT_REVOKED } mdl_assignment_status_t;
extern const char *const mdl_assignment_status_names[];

typedef enum {
    MDL_ENTITLEMENT_OK,
    MDL_ENTITLEMENT_BLOCKED, /* the operator blocks the shop */
    MDL_ENTITLEMENT_HELD, /* this and the next four: access to the order or assignment is closed */
    MDL_ENTITLEMENT_UNDECLARED, /* until the customer's declaration */
    MDL_ENTITLEMENT_REJECTED,
    MDL_ENTITLEMENT_REVOKED,
    MDL_ENTITLEMENT_EXPIRED,
    MDL_ENTITLEMENT_NOT_READY, /* the file is being prepared */
    MDL_ENTITLEMENT_FAILED,    /* its import failed */
    MDL_ENTITLEMENT_RUNNING, /* the last download of it is running: if it breaks off, it is left */
    MDL_ENTITLEMENT_EXHAUSTED, /* no download of it is left */
    MDL_ENTITLEMENT_GONE,      /* the order no longer has the link's file */
    MDL_ENTITLEMENT_LINK_OLD,  /* the link was not used in time, or its session is over */
    MDL_ENTITLEMENT_CAPPED,    /* the link has sent its bytes too often */
    MDL_ENTITLEMENT_CROWDED,   /* the link is sending too many parts at once */
    MDL_ENTITLEMENT_TOO_OFTEN, /* the order's files are requested too often */
    MDL_ENTITLEMENT_UNSETTLED, /* the link's transfers are still being settled: ask again soon */
    MDL_ENTITLEMENTS
} mdl_entitlement_t;

/** Their names in templates; NULL for OK and UNSETTLED, which no customer sees. */
extern const char *const mdl_entitlement_names[MDL_ENTITLEMENTS];

/** OK, HELD, REJECTED or REVOKED, and UNDECLARED instead of OK while the order waits for its
    customer's declaration. */
mdl_entitlement_t mdl_entitlement_of_order(mdl_order_access_t access, int undeclared);

/** OK, REVOKED or EXPIRED.  Access to the assignment ends at expires_at; 0: never. */
mdl_entitlement_t mdl_entitlement_of_assignment(mdl_assignment_status_t status,
                                                apr_time_t expires_at, apr_time_t now);

/** How many downloads of a file are taken. */
typedef struct {
    int used;    /* charged, or held by a session */
    int resting; /* of these, held by sessions without a transfer: the next link takes them over */
    int running; /* of these, held by sessions with a transfer */
} mdl_downloads_t;

/** The downloads of a file that an assignment has, as an allowance has them. */
typedef struct {
    int used;
    int extra;           /* granted ones, beyond the limit */
    const char *version; /* of the bytes that were taken last, by mdl_progress_version; "": none */
} mdl_allowance_t;

/** Makes it the allowance that the file's present bytes, with this SHA-256 (NULL: none), have if
   the mapping has fresh downloads: other bytes than those of its version have the whole limit (0:
    unlimited), and what is left of the granted downloads.  The next download writes it. */
void mdl_allowance_renew(mdl_allowance_t *allowance, const char *sha256, int limit);

/** OK, NOT_READY, FAILED, RUNNING or EXHAUSTED. limit includes granted downloads; 0: unlimited. */
mdl_entitlement_t mdl_entitlement_of_file(mdl_asset_status_t status, mdl_downloads_t downloads,
                                          int limit);

/** All that a download of a file depends on: the shop, and the arguments of the functions above. */
typedef struct {
    int shop_blocked;
    mdl_order_access_t access;
    int undeclared;
    mdl_assignment_status_t assignment;
    apr_time_t expires_at;
    mdl_asset_status_t asset;
    mdl_downloads_t downloads;
    int download_limit;
} mdl_entitlement_facts_t;

/** BLOCKED, or the first of the three results above that is not OK, or OK. */
mdl_entitlement_t mdl_entitlement_of(const mdl_entitlement_facts_t *facts, apr_time_t now);

#endif
