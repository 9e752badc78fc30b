/*
 * A visit: one request for a page of the settings, its user and its shop.
 */
#ifndef MDL_SETTINGS_VISIT_H
#define MDL_SETTINGS_VISIT_H

#include <httpd.h>

#include "connection.h"
#include "core/audit.h"
#include "core/form.h"
#include "core/service/service.h"
#include "core/shop/member.h"
#include "core/shop/shop.h"

typedef struct mdl_visit_t mdl_visit_t;

/** Places of ours that a page's policy allows beside the settings, where forms lead to. */
enum {
    MDL_ALLOW_UPLOADS = 1, /* forms and scripts send to upload URLs, and scripts to the settings */
    MDL_ALLOW_LOGO = 2,    /* pictures come from the public URL's "/logo/" */
    MDL_ALLOW_FRAME = 4    /* its frames show pages of the settings */
};

/** A page, its form, and the least role for each. */
typedef struct {
    const char *path; /* below the settings; the first "{}" is a shop, the second its argument */
    const char *noun; /* of a form, for the audit, like action */
    const char *action;
    mdl_role_t sees;
    int (*get)(mdl_visit_t *visit); /* or NULL */
    mdl_role_t acts;
    int (*post)(mdl_visit_t *visit); /* or NULL */
    const char *done;                /* what is reported after its redirect, see mdl_frame_done */
    mdl_effect_fn *effect;           /* of a form that shares its post with others */
    int changes_keys;      /* a form that changes API keys or shops: this node reads them anew */
    apr_size_t max_length; /* bytes of its form; 0: 16 KiB */
    apr_size_t max_fields; /* of its form; 0: 64 */
    unsigned allows;       /* MDL_ALLOW_… */
    int has_file;          /* its form sends a file (settings/file_form.h) */
} mdl_page_t;

struct mdl_visit_t {
    request_rec *r;
    const mdl_service_t *service;
    const char *user; /* authenticated; NULL for nobody */
    mdl_role_t role;  /* in the shop; on a page without a shop an operator's, or the least */
    mdl_shop_t *shop; /* NULL: the page is about no shop */
    const mdl_page_t *page;
    const char *argument; /* the path's second parameter, or NULL */
    apr_table_t *fields;  /* of the form that was sent; NULL with GET */
    const char *file;     /* that it has brought, or NULL */
    apr_size_t file_length;
    mdl_form_t form;
    mdl_audit_t audit; /* of the form: the router has filled it, an effect may add to it */
    mdl_problem_t problem;
    mdl_connection_t *connection; /* NULL until the first effect, and after mdl_visit_end */
};

/** Runs an effect that reads. */
apr_status_t mdl_visit_read(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/**
 * Runs the form's effect, once (core/write.h), notes visit->audit and starts the jobs that were
 * queued.  Returns MDL_EUSED when the form took effect before, MDL_EPROBLEM when it is refused,
 * where the message of a 412 is for people, and APR_EACCES when the user no longer has the role for
 * it.
 */
apr_status_t mdl_visit_write(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/** The same for a form whose field "seen" tells what its page showed: check, an effect with the
    visit as its argument, returns MDL_EPROBLEM when that has changed.  A form without the field is
    not checked. */
apr_status_t mdl_visit_write_seen(mdl_visit_t *visit, mdl_effect_fn *check, mdl_effect_fn *effect,
                                  void *arg);

/** Runs an effect in a transaction of its own, without form, audit and check of the role: another
    step of what mdl_visit_write has begun, or one for everybody who may see the page. */
apr_status_t mdl_visit_write_on(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/** Gives the connection back; call it before a page is sent. */
void mdl_visit_end(mdl_visit_t *visit);

/** A field's value, trimmed; NULL when it is absent, empty or not UTF-8.  Of several fields with
   one name the first. */
const char *mdl_visit_field(const mdl_visit_t *visit, const char *name);

/** The values of all fields of one name (const char *), in the form's order, without those for
   which mdl_visit_field would return NULL. */
apr_array_header_t *mdl_visit_fields(const mdl_visit_t *visit, const char *name);

/** The same for a parameter of the query. */
const char *mdl_visit_parameter(const mdl_visit_t *visit, const char *name);

/** The parameter "before" of a list with descending ids; APR_INT64_MAX when absent or no number. */
apr_int64_t mdl_visit_before(const mdl_visit_t *visit);

/** A number of 0 to max in decimal digits; -1 for NULL and for any other text. */
int mdl_visit_number(const char *text, int max);

#endif
