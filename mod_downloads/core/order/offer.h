/*
 * What an order offers its customer now: its products, each with the files, archives, links and
 * license keys of its open assignments.  Those of the same product and title are one product, such
 * as variants without titles of their own; what several of them give is listed once.  offer_json.h
 * is for templates.
 */
#ifndef MDL_CORE_ORDER_OFFER_H
#define MDL_CORE_ORDER_OFFER_H

#include "core/order/order.h"

/** A file of one assignment of a product, or of several that expire in the same minute, because
    dates are shown to the minute. */
typedef struct {
    const mdl_order_file_t *file; /* of the assignment with the most downloads left, which gives the
                                     next download: so the archives last longest */
    mdl_entitlement_t entitlement;
    const char *product;   /* title of the product, as people gave it; or NULL */
    apr_time_t expires_at; /* 0: never */
    int left;              /* downloads left, over all these assignments */
    int total;             /* download limit, over all of them; 0: unlimited */
} mdl_offer_file_t;

/** All ready files of an assignment as a ZIP archive.  Assignments of a product with the same files
    share it. */
typedef struct {
    const mdl_assignment_t *assignment; /* one with downloads left, if there is any */
    mdl_entitlement_t entitlement;      /* OK, RUNNING or EXHAUSTED */
    apr_int64_t size;
    int count;         /* number of files in it */
    const char *title; /* of the first file */
    int is_all;        /* whether it has every file of its product */
} mdl_offer_archive_t;

typedef struct {
    const mdl_order_link_t *link;
    const char *product;   /* as mdl_offer_file_t's */
    apr_time_t expires_at; /* the latest of its assignments; 0: never */
} mdl_offer_link_t;

/** What the shop tells the buyers of a product. */
typedef struct {
    const char *product; /* title, as people gave it; or NULL */
    const char *note;
} mdl_offer_note_t;

typedef struct {
    int position;                     /* among the offer's */
    const char *title;                /* as people gave it; or NULL */
    apr_array_header_t *notes;        /* const char *; those of its mappings */
    apr_array_header_t *files;        /* mdl_offer_file_t * */
    apr_array_header_t *archives;     /* mdl_offer_archive_t * */
    apr_array_header_t *links;        /* mdl_offer_link_t * */
    apr_array_header_t *license_keys; /* int; where they are among the offer's */
    apr_int64_t license_keys_pending;
    int ends_differ; /* as the offer's, of the assignments of the product */
    apr_time_t expires_at;
} mdl_offer_product_t;

typedef struct {
    apr_array_header_t
        *products; /* mdl_offer_product_t *, in the order in which they were bought */
    /* What all products give. */
    apr_array_header_t *notes;        /* mdl_offer_note_t; none twice, if the order has notes */
    apr_array_header_t *files;        /* mdl_offer_file_t * */
    apr_array_header_t *archives;     /* mdl_offer_archive_t * */
    apr_array_header_t *links;        /* mdl_offer_link_t * */
    apr_array_header_t *license_keys; /* mdl_license_key_t */
    apr_array_header_t *key_products; /* const char *, of each of them: as mdl_offer_file_t's */
    apr_int64_t license_keys_pending;
    int ends_differ;       /* whether the assignments expire at different times */
    apr_time_t expires_at; /* when all of them expire, unless ends_differ; 0: never */
    apr_time_t expired_at; /* when the latest of the expired assignments expired; 0: none */
} mdl_offer_t;

/** The offer of an order whose access is open. */
const mdl_offer_t *mdl_offer_make(const mdl_order_t *order, apr_time_t now, apr_pool_t *p);

/** Whether nothing is offered, not even a pending license key. */
int mdl_offer_is_empty(const mdl_offer_t *offer);

/** The value of the page's button for a file: "{assignment id}-{asset id}". */
const char *mdl_offer_file_id(const mdl_order_file_t *file, apr_pool_t *p);

/*
 * Each of these chooses what a customer asks for, perhaps from an old page: from the assignment
 * that the request names or, if that one no longer gives it, from another of its product that does
 * (a link: from any).  Returns OK,
 * or the reason why the named assignment does not give it; GONE if the order does not have it.
 */

/** Chooses a file, by mdl_offer_file_id. */
mdl_entitlement_t mdl_offer_choose_file(const mdl_order_t *order, const char *id, apr_time_t now,
                                        const mdl_order_file_t **file, apr_pool_t *p);

/** Chooses an archive, by the assignment's id in digits; NOT_READY when the assignment has none. */
mdl_entitlement_t mdl_offer_choose_archive(const mdl_order_t *order, const char *id, apr_time_t now,
                                           const mdl_assignment_t **assignment, apr_pool_t *p);

/** Chooses a link, by its id. */
mdl_entitlement_t mdl_offer_choose_link(const mdl_order_t *order, apr_int64_t link_id,
                                        apr_time_t now, const mdl_order_link_t **link);

/** The size of an assignment's archive in bytes; 0 when none is offered: the mapping gives no
    archive, fewer than two files are ready, or not all files were read. */
apr_int64_t mdl_offer_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p);

#endif
