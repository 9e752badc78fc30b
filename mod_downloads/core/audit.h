/*
 * The audit log: every change that a person or an API key makes, with who and when.  core/write.c
 * adds the entry in the transaction of the change.  Changes by the service itself have no entry.
 * An entry never has a secret, a customer's address or a page's address.
 */
#ifndef MDL_CORE_AUDIT_H
#define MDL_CORE_AUDIT_H

#include "core/list_page.h"
#include "db/db.h"

#define MDL_REASON_MAX       500                  /* characters of a given reason */
#define MDL_AUDIT_DETAIL_MAX (4 * MDL_REASON_MAX) /* bytes, so a reason always fits */

typedef enum { MDL_VIA_API, MDL_VIA_SETTINGS, MDL_VIA_COMMAND } mdl_via_t;
extern const char *const mdl_via_names[];

typedef struct {
    apr_int64_t id;        /* out */
    apr_int64_t shop_id;   /* 0: none */
    const char *shop_name; /* out, or NULL */
    const char *noun;      /* "order", "pack", … */
    const char *noun_id;   /* as in the API and on pages, or NULL */
    const char *action;    /* "created", "revoked", … */
    mdl_via_t via;
    const char *key_id;     /* of the API key; NULL: a person */
    const char *key_name;   /* out, or NULL */
    const char *user;       /* the member, or the system's user of the command, or NULL */
    const char *request_id; /* out: of the request (mdl_db_request), or NULL */
    const char *detail;     /* the given reason, or what was changed; or NULL */
    apr_time_t created_at;  /* out */
} mdl_audit_t;

/** Adds an entry; cuts a detail beyond MDL_AUDIT_DETAIL_MAX.  Without noun or action, this or the
    end of the transaction fails, so there is no change without an entry. */
apr_status_t mdl_audit_add(mdl_db_t *db, const mdl_audit_t *entry, apr_pool_t *p);

/** The nouns of a shop's entries, as lists are asked for them. */
extern const char *const mdl_audit_noun_names[];

/**
 * Effect: reads a page of entries, newest first; page.more and page.next say whether there are
 * older ones.  With a filter it looks at MDL_AUDIT_SEARCHED entries at most, so a page may have few
 * or none although older entries fit.  Only operators get the detail of "blocked".
 */
#define MDL_AUDIT_SEARCHED 300
typedef struct {
    mdl_list_page_t page;   /* of mdl_audit_t; shop_id 0: all shops */
    const char *noun;       /* NULL: any */
    const char *request_id; /* its entries, of all shops; NULL: any */
    const char *who;        /* a user, or a key by its id or name; NULL: anybody */
    int for_operator;
} mdl_audit_list_t;
apr_status_t mdl_audit_list(mdl_db_t *db, apr_pool_t *p, mdl_audit_list_t *list);

#endif
