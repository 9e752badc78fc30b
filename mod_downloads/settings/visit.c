#include "settings/visit.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/text/utf8.h"
#include "core/identifier.h"
#include "core/shop/key.h"
#include "core/shop/key_cache.h"
#include "core/write.h"

apr_status_t mdl_visit_read(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    return mdl_connection_run(&visit->connection, visit->r, mdl_db_snapshot, effect, arg);
}

typedef struct {
    mdl_visit_t *visit;
    mdl_effect_fn *check; /* or NULL */
    mdl_effect_fn *effect;
    void *arg;
} visit_write_t;

/* The user may have lost the role while the form was sent. */
static apr_status_t visit_check_role(mdl_db_t *db, const mdl_visit_t *visit, apr_pool_t *p)
{
    mdl_role_t role = MDL_ROLE_READ_ONLY;
    apr_status_t rv = mdl_member_role(db, visit->user, visit->shop != NULL ? visit->shop->id : 0,
                                      &role, p);

    return rv == APR_ENOENT || (rv == APR_SUCCESS && role < visit->page->acts) ? APR_EACCES : rv;
}

static apr_status_t visit_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const visit_write_t *write = arg;
    apr_status_t rv = visit_check_role(db, write->visit, p);

    if (rv == APR_SUCCESS && write->check != NULL &&
        mdl_visit_field(write->visit, "seen") != NULL) {
        rv = write->check(db, p, write->visit);
    }
    return rv == APR_SUCCESS ? write->effect(db, p, write->arg) : rv;
}

MDL_EFFECT(mdl_write, mdl_write_t *)
MDL_EFFECT(mdl_key_epoch, apr_int64_t *)

/* Makes the form's change of keys or shops effective on this node at once. */
static void visit_renew_key_cache(mdl_visit_t *visit)
{
    apr_time_t asked_at = mdl_clock_monotonic();
    apr_int64_t epoch;

    if (mdl_connection_run(&visit->connection, visit->r, mdl_db_read, mdl_key_epoch_effect,
                           &epoch) == APR_SUCCESS) {
        mdl_key_cache_set_epoch(visit->service->key_cache, epoch, asked_at);
    }
}

apr_status_t mdl_visit_write(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    return mdl_visit_write_seen(visit, NULL, effect, arg);
}

apr_status_t mdl_visit_write_seen(mdl_visit_t *visit, mdl_effect_fn *check, mdl_effect_fn *effect,
                                  void *arg)
{
    visit_write_t checked = {.visit = visit, .check = check, .effect = effect, .arg = arg};
    mdl_write_t write = {.effect = visit_effect,
                         .arg = &checked,
                         .audit = &visit->audit,
                         .problem = &visit->problem,
                         .form = &visit->form};
    apr_status_t rv = mdl_connection_run(&visit->connection, visit->r, mdl_db_write,
                                         mdl_write_effect, &write);

    if (rv == APR_SUCCESS) {
        mdl_service_wake(visit->service, write.due);
        if (visit->page->changes_keys) {
            visit_renew_key_cache(visit);
        }
    } else if (rv == MDL_EPROBLEM && visit->problem.status == HTTP_PRECONDITION_FAILED) {
        visit->problem.message = "Somebody has changed this since the page was shown, so nothing "
                                 "was done. Look at it as it is now, and decide anew.";
    }
    return rv;
}

apr_status_t mdl_visit_write_on(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    return mdl_connection_run(&visit->connection, visit->r, mdl_db_write, effect, arg);
}

void mdl_visit_end(mdl_visit_t *visit)
{
    mdl_connection_close(visit->connection);
    visit->connection = NULL;
}

/* Trimmed text; NULL when it is empty or not UTF-8. */
static const char *visit_trim(const char *value, apr_pool_t *p)
{
    const char *text = value != NULL && mdl_utf8_valid(value) ? mdl_utf8_trimmed(value, p) : "";

    return *text != '\0' ? text : NULL;
}

const char *mdl_visit_field(const mdl_visit_t *visit, const char *name)
{
    return visit->fields != NULL ? visit_trim(apr_table_get(visit->fields, name), visit->r->pool)
                                 : NULL;
}

typedef struct {
    const mdl_visit_t *visit;
    apr_array_header_t *values;
} fields_t;

static int fields_add(void *baton, const char *name, const char *value)
{
    fields_t *fields = baton;
    const char *text = visit_trim(value, fields->visit->r->pool);

    (void)name;
    if (text != NULL) {
        APR_ARRAY_PUSH(fields->values, const char *) = text;
    }
    return 1;
}

apr_array_header_t *mdl_visit_fields(const mdl_visit_t *visit, const char *name)
{
    fields_t fields = {visit, apr_array_make(visit->r->pool, 8, sizeof(const char *))};

    if (visit->fields != NULL) {
        apr_table_do(fields_add, &fields, visit->fields, name, NULL);
    }
    return fields.values;
}

/* A GET form sends a space as "+" (WHATWG URL, section 5.2); ap_args_to_table would keep it. */
const char *mdl_visit_parameter(const mdl_visit_t *visit, const char *name)
{
    apr_pool_t *p = visit->r->pool;
    const char *query = visit->r->args != NULL ? visit->r->args : "";

    while (*query != '\0') {
        char *value = ap_getword(p, &query, '&');
        const char *given = ap_getword_nc(p, &value, '=');

        if (strcmp(given, name) == 0) {
            return ap_unescape_urlencoded(value) == OK ? visit_trim(value, p) : NULL;
        }
    }
    return NULL;
}

apr_int64_t mdl_visit_before(const mdl_visit_t *visit)
{
    apr_int64_t before = mdl_identifier_parse(mdl_visit_parameter(visit, "before"));

    return before != 0 ? before : APR_INT64_MAX;
}

int mdl_visit_number(const char *text, int max)
{
    apr_int64_t number = mdl_identifier_parse(text);

    if (number == 0 && (text == NULL || strcmp(text, "0") != 0)) {
        return -1;
    }
    return number <= max ? (int)number : -1;
}
