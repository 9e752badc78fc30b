/*
 * Token buckets in shared memory, over all processes of a node (contract, section 5).  Each is kept
 * as a virtual scheduling clock (GCRA): one 64-bit word says when the bucket will be full again,
 * and one compare-and-swap takes tokens, so that a limit is exact without a lock.
 */
#ifndef MDL_CORE_SHOP_RATE_LIMIT_H
#define MDL_CORE_SHOP_RATE_LIMIT_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "core/settings/settings.h"

#define MDL_RATE_ROWS 1000

typedef struct mdl_rate_limit_t mdl_rate_limit_t;

/** What is limited, each in buckets of its own. */
typedef enum {
    MDL_RATE_KEY,    /* the requests of an API key, by its id */
    MDL_RATE_SHOP,   /* those of all keys of a shop, by its id */
    MDL_RATE_OPEN,   /* requests that need no key, by the client's network */
    MDL_RATE_FORGED, /* keys and links that are refused, likewise; limited even if requests are not
                      */
    MDL_RATE_PAGE,   /* views of an order's page, its buttons and links, by the page's id */
    MDL_RATE_PART,   /* requests for its files, likewise */
    MDL_RATE_MAIL,   /* a shop's emails, by its id; limited even if requests are not */
    MDL_RATE_MAIL_LINE,       /* lines of the log that say so, likewise */
    MDL_RATE_SIGN_IN_USER,    /* passwords that are tried, by the user's name; this and the next are
                                 limited even if requests are not */
    MDL_RATE_SIGN_IN_NETWORK, /* the same, by the client's network */
    MDL_RATE_KINDS
} mdl_rate_kind_t;

/** Makes full buckets in anonymous shared memory that lives as long as p: until httpd restarts. */
apr_status_t mdl_rate_limit_create(mdl_rate_limit_t **limit, const mdl_settings_t *settings,
                                   apr_pool_t *p);

typedef struct {
    int allowed;
    int size;                    /* tokens of a full bucket; 0: there is no limit */
    int remaining;               /* tokens */
    apr_interval_time_t full_in; /* until the bucket is full */
    apr_interval_time_t more_in; /* until what was refused would be there; when it was allowed,
                                    until there is another token, 0 for a full bucket */
} mdl_rate_state_t;

/** Takes cost tokens from the bucket of that name, or none where there are too few; 0 only looks.
    now is of mdl_clock_monotonic.  Any thread of any process may call. */
void mdl_rate_limit_take(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name, int cost,
                         apr_time_t now, mdl_rate_state_t *state);

/** Charges what a request has cost beyond its first tokens, once that is known: one for each
    MDL_RATE_ROWS rows that it has read.  The bucket may owe them, as many as it can hold. */
void mdl_rate_limit_charge_rows(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                                unsigned rows, apr_time_t now);

/** The name of a client's network: an IPv4 address, or the first 64 bits of an IPv6 one. */
const char *mdl_rate_limit_network(const char *address, apr_pool_t *p);

/** Takes a token, if there is none one that will come; returns how long it takes to come, 0 for one
    that was there. */
apr_interval_time_t mdl_rate_limit_reserve(mdl_rate_limit_t *limit, mdl_rate_kind_t kind,
                                           const char *name, apr_time_t now);

/** Puts back cost tokens that were taken. */
void mdl_rate_limit_return(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                           int cost);

#endif
