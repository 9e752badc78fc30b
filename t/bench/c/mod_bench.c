/*
 * Two handlers of `make bench`, so that what the module needs for a request can be compared with
 * the least that any handler in the same httpd needs:
 *
 *   bench-bare     answers with a line
 *   bench-select   answers with the rows of a statement: ?label&argument&argument…
 *
 * BenchSelect LABEL SQL names a statement, in apr_dbd's words.
 */
#include <apr_dbd.h>
#include <apr_hash.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <mod_dbd.h>

#define MOST_ARGUMENTS 4

static APR_OPTIONAL_FN_TYPE(ap_dbd_acquire) * (acquire);
static apr_hash_t *statements; /* by label, the SQL */

static int send_bare(request_rec *r)
{
    ap_set_content_type(r, "application/json");
    ap_rputs("{\"ok\":true}\n", r);
    return OK;
}

/* Prepared once for each connection; again on SQLite when a PRAGMA or a busy database has made that
   void.  Sets rows and the first row. */
static int select_rows(ap_dbd_t *dbd, const char *label, const char **arguments, int count,
                       apr_dbd_results_t **rows, apr_dbd_row_t **row, apr_pool_t *p)
{
    const char *sql = apr_hash_get(statements, label, APR_HASH_KEY_STRING);
    apr_dbd_prepared_t *statement = apr_hash_get(dbd->prepared, label, APR_HASH_KEY_STRING);

    for (int tries = 0; sql != NULL && tries < 3; tries++) {
        if (statement != NULL &&
            apr_dbd_pselect(dbd->driver, p, dbd->handle, rows, statement, 1, count, arguments) ==
                0 &&
            apr_dbd_get_row(dbd->driver, p, *rows, row, -1) == 0) {
            return 1;
        }
        statement = NULL;
        apr_dbd_prepare(dbd->driver, dbd->pool, dbd->handle, sql, label, &statement);
        apr_hash_set(dbd->prepared, apr_pstrdup(dbd->pool, label), APR_HASH_KEY_STRING, statement);
    }
    return 0;
}

static int send_rows(request_rec *r)
{
    char *rest = apr_pstrdup(r->pool, r->args != NULL ? r->args : "");
    const char *label = apr_strtok(rest, "&", &rest);
    const char *arguments[MOST_ARGUMENTS] = {NULL};
    ap_dbd_t *dbd = acquire(r);
    apr_dbd_results_t *rows = NULL;
    apr_dbd_row_t *row = NULL;
    int count = 0;

    while (count < MOST_ARGUMENTS && (arguments[count] = apr_strtok(NULL, "&", &rest)) != NULL) {
        count++;
    }
    if (dbd == NULL || label == NULL ||
        !select_rows(dbd, label, arguments, count, &rows, &row, r->pool)) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    ap_set_content_type(r, "text/plain");
    do {
        for (int i = 0; i < apr_dbd_num_cols(dbd->driver, rows); i++) {
            const char *value = apr_dbd_get_entry(dbd->driver, row, i);

            ap_rputs(value != NULL ? value : "", r);
            ap_rputc(' ', r);
        }
        ap_rputc('\n', r);
    } while (apr_dbd_get_row(dbd->driver, r->pool, rows, &row, -1) == 0);
    return OK;
}

static int handle(request_rec *r)
{
    if (r->handler == NULL || strncmp(r->handler, "bench-", 6) != 0) {
        return DECLINED;
    }
    return strcmp(r->handler, "bench-select") == 0 ? send_rows(r) : send_bare(r);
}

static const char *add_statement(cmd_parms *cmd, void *dir, const char *label, const char *sql)
{
    (void)dir;
    if (statements == NULL) {
        statements = apr_hash_make(cmd->server->process->pool);
    }
    apr_hash_set(statements, apr_pstrdup(cmd->server->process->pool, label), APR_HASH_KEY_STRING,
                 apr_pstrdup(cmd->server->process->pool, sql));
    return NULL;
}

static const command_rec commands[] = {
    AP_INIT_TAKE2("BenchSelect", add_statement, NULL, RSRC_CONF, "a label and its statement"),
    {NULL}};

static void find_dbd(void)
{
    acquire = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_acquire);
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    ap_hook_optional_fn_retrieve(find_dbd, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handle, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(bench) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands, register_hooks, AP_MODULE_FLAG_NONE,
};
