/*
 * A visit: one request for a page of the settings, who makes it, and the shop that it is about.
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

/** A page: what shows it, and what takes its form, for whoever has the least role for that. */
typedef struct {
    const char *path; /* below the settings; the first "{}" is a shop, the second its argument */
    const char *noun; /* of a form: what the audit has of it */
    const char *action;
    mdl_role_t sees;
    int (*get)(mdl_visit_t *visit); /* or NULL */
    mdl_role_t acts;
    int (*post)(mdl_visit_t *visit); /* or NULL */
    const char *done;                /* what its redirect says, if it leads back to the shop */
    mdl_effect_fn *effect;           /* of a form of which many are alike */
    int changes_keys; /* of the API, which this node heeds from the next request on */
} mdl_page_t;

struct mdl_visit_t {
    request_rec *r;
    const mdl_service_t *service;
    const char *user; /* as httpd has authenticated it; NULL for nobody */
    mdl_role_t role;  /* in the shop; of a page without one an operator's, or the least */
    mdl_shop_t *shop; /* NULL: the page is about no shop */
    const mdl_page_t *page;
    const char *argument; /* what the path names besides, or NULL */
    apr_table_t *fields;  /* of the form that was sent; NULL with GET */
    mdl_form_t form;
    mdl_audit_t audit; /* of the form: the router has filled it, an effect may add to it */
    mdl_problem_t problem;
    mdl_connection_t *connection; /* NULL until the first effect, and after mdl_visit_end */
};

/** Runs an effect that reads. */
apr_status_t mdl_visit_read(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/**
 * Runs the effect of the form that was sent, once (core/write.h): MDL_EUSED when it has taken
 * effect before, MDL_EPROBLEM when it is refused for what it says, with a sentence for people in
 * place of 412; APR_EACCES when the user has no longer the role for it.  What visit->audit says is
 * noted after it.  The jobs that it queues are begun at once.
 */
apr_status_t mdl_visit_write(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/**
 * The same, if what the form's page has shown, its field "seen", is still so: check, an effect
 * with the visit as its argument, returns MDL_EPROBLEM when it is not.  A form without the field
 * is not checked.
 */
apr_status_t mdl_visit_write_seen(mdl_visit_t *visit, mdl_effect_fn *check, mdl_effect_fn *effect,
                                  void *arg);

/** Runs a transaction of its own: another one of the change that mdl_visit_write has begun, or one
    that is for whoever may see the page. */
apr_status_t mdl_visit_write_on(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg);

/** Gives the connection back; before a page is sent. */
void mdl_visit_end(mdl_visit_t *visit);

/** The value of a field without spaces at its ends, NULL when it is absent or empty, or is no
    text of UTF-8. */
const char *mdl_visit_field(const mdl_visit_t *visit, const char *name);

/** The same of a parameter of the query. */
const char *mdl_visit_parameter(const mdl_visit_t *visit, const char *name);

/** The parameter before of a list that goes from high ids to low; APR_INT64_MAX when it is absent
   or no number. */
apr_int64_t mdl_visit_before(const mdl_visit_t *visit);

/** A number of 0 to max in decimal digits; -1 for NULL and for any other text. */
int mdl_visit_number(const char *text, int max);

#endif
