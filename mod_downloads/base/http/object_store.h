/*
 * An object store that speaks S3's API: where it is, how it is asked, and how requests to it fail.
 * base/http/object.h, object_parts.h and object_reader.h have the requests.  Every call blocks, and
 * any thread may make it.
 *
 * The host comes from the configuration, so any address is allowed.  No proxy of the environment is
 * used and no redirect followed; TLS is at least 1.2 and verified; headers and answers have bounds.
 */
#ifndef MDL_BASE_HTTP_OBJECT_STORE_H
#define MDL_BASE_HTTP_OBJECT_STORE_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

#include "base/http/sign.h"

/* The errors of all calls, besides APR_ENOENT (no such object), APR_ENOSPC (the store is full, or
   its quota is used up) and APR_EINTR (stopped). */

/** No answer, or a failure that passes: try later. */
#define MDL_OBJECT_EAWAY (APR_OS_START_USERERR + 201)
/** Key, region, bucket, policy or certificate is wrong: for the operator. */
#define MDL_OBJECT_EDENIED (APR_OS_START_USERERR + 202)
/** Bytes or parts are not those that we have written. */
#define MDL_OBJECT_EBROKEN (APR_OS_START_USERERR + 203)

/** A store and its idle connections, shared by all threads of a process.  While the store is away
    one call at a time asks it, and new ones fail at once with MDL_OBJECT_EAWAY. */
typedef struct mdl_object_store_t mdl_object_store_t;

typedef struct {
    const char *url; /* scheme://host[:port]/bucket[/prefix] */
    const char *region;
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* of temporary credentials, or NULL */
    const char *public_url;    /* where clients reach the same bucket and prefix, in the form of
                                  url; NULL: at url */
    const char *ca_file;       /* certificates in PEM to trust; NULL: the system's */
    int timeout_s;             /* to connect, and to the first byte of an answer */
} mdl_object_config_t;

/**
 * Checks a configuration and makes the store of it, in p; config is copied.  It connects to
 * nothing, so a parent process may do it before it forks; in the process that uses the store,
 * mdl_http_global_init comes first.  Returns APR_EINVAL for a malformed URL, with a sentence in
 * *why.  When p is destroyed, no call may run.
 */
apr_status_t mdl_object_store_create(mdl_object_store_t **store, const mdl_object_config_t *config,
                                     const char **why, apr_pool_t *p);

/** The store's host and port, for the log. */
const char *mdl_object_store_host(const mdl_object_store_t *store);

/** Whether the store is away.  A worker that has other work does that first. */
int mdl_object_store_is_away(mdl_object_store_t *store);

/** How a call is made, and why it failed.  It belongs to the caller, for one call after another. */
typedef struct {
    /* How long failures that pass are tried again, with pauses of 0.2, 0.4 … 5 s; 0: never. */
    apr_interval_time_t patience;
    int (*stopped)(void *baton); /* whether to give up, asked four times a second; or NULL */
    void *baton;
    const char *why; /* set by a failure: a sentence for the operator's log, in the call's pool; it
                        names the host and the store's code, and has no key or signature in it */
    int sent;        /* set: how many requests the last call has sent; a lost answer's may have done
                        what they ask */
} mdl_object_call_t;

/** Bytes to send, from memory or from a file. */
typedef struct {
    const char *bytes; /* NULL: from fd, by pread, so its position doesn't matter */
    int fd;
    apr_int64_t offset; /* in fd */
    apr_int64_t length;
    const char *sha256; /* of these bytes, in lower-case hexadecimal; the store refuses others */
} mdl_object_body_t;

/* --- private to base/http --- */

/** Where requests go. */
typedef struct {
    const char *origin; /* scheme://host[:port] */
    const char *host;   /* as in the Host header: without the scheme's own port */
    const char *path;   /* of the bucket, with no slash at its end: "/bucket" or "" */
    const char *prefix; /* of every key: "", or it ends with a slash */
} mdl_object_place_t;

const mdl_object_config_t *mdl_object_store_config(const mdl_object_store_t *store);
const mdl_sign_credentials_t *mdl_object_store_credentials(const mdl_object_store_t *store);
const mdl_object_place_t *mdl_object_store_place(const mdl_object_store_t *store);
const mdl_object_place_t *mdl_object_store_public_place(const mdl_object_store_t *store);

/** The time by the store's clock, as far as it is known. */
apr_time_t mdl_object_store_now(const mdl_object_store_t *store);

/** Learns the store's clock from the Date of an answer. */
void mdl_object_store_set_clock(mdl_object_store_t *store, apr_time_t date);

/** Whether a request may be sent now; *probe gets whether it is the one that asks a store that is
    away.  Then mdl_object_store_note must follow. */
int mdl_object_store_approach(mdl_object_store_t *store, int *probe);

/** Notes that the store has answered, or, with answered 0, that a request failed in a way that
    passes, and why. */
void mdl_object_store_note(mdl_object_store_t *store, int *probe, int answered, const char *why);

/** Ends a probe that has found out nothing. */
void mdl_object_store_leave(mdl_object_store_t *store, int *probe);

/** Logs, at most once a minute, that the store denies something. */
void mdl_object_store_log_denied(mdl_object_store_t *store, const char *why);

/** The connections that nobody uses at the moment. */
struct mdl_object_connections_t *mdl_object_store_connections(mdl_object_store_t *store);

#endif
