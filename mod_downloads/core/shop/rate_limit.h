/*
 * Token buckets in shared memory, for all processes of a node (contract, section 5).  The algorithm
 * is GCRA: a 64-bit word has the time when the bucket will be full again, and a compare-and-swap
 * takes tokens, so limits are exact without a lock.
 */
#ifndef MDL_CORE_SHOP_RATE_LIMIT_H
#define MDL_CORE_SHOP_RATE_LIMIT_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "core/settings/settings.h"

#define MDL_RATE_ROWS 1000

typedef struct mdl_rate_limit_t mdl_rate_limit_t;

/** What is limited, each kind in its own buckets.  Each node counts for itself; of emails it takes
    its share (mdl_rate_limit_set_mail). */
typedef enum {
    MDL_RATE_KEY,          /* requests of an API key, by its id */
    MDL_RATE_SHOP,         /* requests of all keys of a shop, by its id */
    MDL_RATE_OPEN,         /* requests without a key, by the client's network */
    MDL_RATE_FORGED,       /* refused keys and links, likewise; limited in any case */
    MDL_RATE_PAGE,         /* requests for an order's page, buttons and links, by the page's id */
    MDL_RATE_PART,         /* requests for an order's files, likewise */
    MDL_RATE_MAIL,         /* a shop's emails, by its id; limited in any case */
    MDL_RATE_MAIL_LINE,    /* lines in the log about that limit, likewise */
    MDL_RATE_SIGN_IN_USER, /* passwords tried, by the user's name; limited in any case */
    MDL_RATE_SIGN_IN_NETWORK, /* the same, by the client's network */
    MDL_RATE_FIND, /* requests for the links of an address, likewise; limited in any case */
    MDL_RATE_NEWS, /* a shop's emails about new versions, by its id: half as many as MDL_RATE_MAIL
                    */
    MDL_RATE_KINDS
} mdl_rate_kind_t;

/** Makes full buckets in anonymous shared memory that lives as long as p, until httpd restarts. */
apr_status_t mdl_rate_limit_create(mdl_rate_limit_t **limit, const mdl_settings_t *settings,
                                   apr_pool_t *p);

/** Sets how many emails an hour a shop may send from this process, 0: no limit.  A bucket stays as
    full as it is, in parts of the whole.  For the one thread that reserves MDL_RATE_MAIL and
    MDL_RATE_NEWS. */
void mdl_rate_limit_set_mail(mdl_rate_limit_t *limit, int rate);

typedef struct {
    int allowed;
    int size;                    /* tokens of a full bucket; 0: no limit */
    int remaining;               /* tokens */
    apr_interval_time_t full_in; /* until the bucket is full */
    apr_interval_time_t more_in; /* until a refused request would be allowed; if allowed, until the
                                    next token comes, 0 for a full bucket */
} mdl_rate_state_t;

/** Takes cost tokens from the bucket of a name, or none if there are too few; 0 only looks. now is
    by mdl_clock_monotonic.  Any thread of any process may call. */
void mdl_rate_limit_take(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name, int cost,
                         apr_time_t now, mdl_rate_state_t *state);

/** Charges the further cost of a request once it is known: a token for each MDL_RATE_ROWS rows
    read.  The bucket may go into debt, by at most its size. */
void mdl_rate_limit_charge_rows(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                                unsigned rows, apr_time_t now);

/** The name of a client's network: the IPv4 address, or the first 64 bits of the IPv6 address. */
const char *mdl_rate_limit_network(const char *address, apr_pool_t *p);

/** Takes a token, in advance if there is none; returns the time until it comes, or 0. */
apr_interval_time_t mdl_rate_limit_reserve(mdl_rate_limit_t *limit, mdl_rate_kind_t kind,
                                           const char *name, apr_time_t now);

/** Gives back cost tokens. */
void mdl_rate_limit_return(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                           int cost);

#endif
