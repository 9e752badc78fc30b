/*
 * What an order offers its customer now: the files, archives, links and license keys of those of
 * its assignments that are open, each of them once, whatever number of assignments gives it.
 * offer_json.h shows it to templates.
 */
#ifndef MDL_CORE_ORDER_OFFER_H
#define MDL_CORE_ORDER_OFFER_H

#include "core/order/order.h"

/** A file of one assignment, or of several that end in the same minute: dates are shown to the
    minute. */
typedef struct {
    const mdl_order_file_t *file; /* of the assignment with most downloads left, which the next one
                                     is taken from, so that an archive lasts longest */
    mdl_entitlement_t entitlement;
    apr_time_t expires_at; /* 0: never */
    int left;              /* downloads, of all these assignments */
    int total;             /* likewise; 0: unlimited */
} mdl_offer_file_t;

/** All ready files of an assignment as one ZIP archive, also where several have the same files. */
typedef struct {
    const mdl_assignment_t *assignment; /* with downloads left, where one has any */
    mdl_entitlement_t entitlement;      /* OK, RUNNING or EXHAUSTED */
    apr_int64_t size;
    int count;         /* of the files in it */
    const char *title; /* of the first of them */
    int is_all;        /* whether it holds every file of the offer */
} mdl_offer_archive_t;

typedef struct {
    const mdl_order_link_t *link;
    apr_time_t expires_at; /* the last of its assignments'; 0: never */
} mdl_offer_link_t;

typedef struct {
    apr_array_header_t *files;        /* mdl_offer_file_t *, as the next two are pointers */
    apr_array_header_t *archives;     /* mdl_offer_archive_t * */
    apr_array_header_t *links;        /* mdl_offer_link_t * */
    apr_array_header_t *license_keys; /* mdl_license_key_t */
    apr_int64_t license_keys_pending;
    int ends_differ;       /* whether the assignments end at different times */
    apr_time_t expires_at; /* when they end, unless that differs; 0: never */
    apr_time_t expired_at; /* when the last assignment that is not open any more expired; 0: none */
} mdl_offer_t;

/** The offer of an order whose access is open. */
const mdl_offer_t *mdl_offer_make(const mdl_order_t *order, apr_time_t now, apr_pool_t *p);

/** Whether nothing is offered, not even a license key to come. */
int mdl_offer_is_empty(const mdl_offer_t *offer);

/** What the page's button for a file sends: "{assignment id}-{asset id}". */
const char *mdl_offer_file_id(const mdl_order_file_t *file, apr_pool_t *p);

/*
 * Choosing what a customer asks for, perhaps from an old page: from the assignment that the request
 * names or, if that no longer gives it, from another one that does.  Returns OK, or else the reason
 * of the assignment that is named; GONE if the order does not have it.
 */

/** A file, by mdl_offer_file_id. */
mdl_entitlement_t mdl_offer_choose_file(const mdl_order_t *order, const char *id, apr_time_t now,
                                        const mdl_order_file_t **file, apr_pool_t *p);

/** An archive, by the assignment's id in digits; NOT_READY when the assignment has none. */
mdl_entitlement_t mdl_offer_choose_archive(const mdl_order_t *order, const char *id, apr_time_t now,
                                           const mdl_assignment_t **assignment, apr_pool_t *p);

/** A link, by its id. */
mdl_entitlement_t mdl_offer_choose_link(const mdl_order_t *order, apr_int64_t link_id,
                                        apr_time_t now, const mdl_order_link_t **link);

/** The length of an assignment's archive; 0 when none is offered, because its files are offered one
    by one, fewer than two are ready, or not all of them were read. */
apr_int64_t mdl_offer_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p);

#endif
