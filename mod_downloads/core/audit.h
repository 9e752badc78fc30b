/*
 * The audit: every change that a person or a key made, of all nouns, with who and when.  An entry
 * is added in the transaction of its change, by core/write.c.  What the service does by itself has
 * none.  An entry never has a secret, an address of a customer or of a page.
 */
#ifndef MDL_CORE_AUDIT_H
#define MDL_CORE_AUDIT_H

#include <apr_tables.h>

#include "db/db.h"

#define MDL_REASON_MAX       500 /* characters of a reason that somebody gives */
#define MDL_AUDIT_DETAIL_MAX 500 /* bytes */

typedef enum { MDL_VIA_API, MDL_VIA_SETTINGS, MDL_VIA_COMMAND } mdl_via_t;
extern const char *const mdl_via_names[];

typedef struct {
    apr_int64_t id;        /* out */
    apr_int64_t shop_id;   /* 0: of no shop */
    const char *shop_name; /* out, or NULL */
    const char *noun;      /* "order", "pack", … */
    const char *noun_id;   /* as the API and the pages write it, or NULL */
    const char *action;    /* "created", "revoked", … */
    mdl_via_t via;
    const char *key_id;     /* of the API's caller; NULL: a person */
    const char *key_name;   /* out, or NULL */
    const char *user;       /* the member, or the system's user who ran the command, or NULL */
    const char *request_id; /* out: of the request that did it (mdl_db_request), or NULL */
    const char *detail;     /* a reason that was given, or what was changed; NULL for none */
    apr_time_t created_at;  /* out */
} mdl_audit_t;

/** Adds an entry; a detail beyond MDL_AUDIT_DETAIL_MAX is cut.  Without noun or action it fails, or
    the end of the transaction does: no change may be without. */
apr_status_t mdl_audit_add(mdl_db_t *db, const mdl_audit_t *entry, apr_pool_t *p);

/**
 * Effect that reads a page of entries, newest first.  With a filter it looks at MDL_AUDIT_SEARCHED
 * entries and no more, so that a page may have few or none though older ones fit.
 */
#define MDL_AUDIT_SEARCHED 300
typedef struct {
    apr_int64_t shop_id; /* 0: of all shops */
    apr_int64_t before;  /* only ids below this one */
    const char *noun;    /* NULL: any */
    const char *who;     /* a user, or a key by its id or name; NULL: anybody */
    int limit;
    apr_array_header_t *found; /* out: mdl_audit_t * */
    apr_int64_t next;          /* out: "before" of the next page; 0 when there is none */
} mdl_audit_list_t;
apr_status_t mdl_audit_list(mdl_db_t *db, apr_pool_t *p, mdl_audit_list_t *list);

#endif
