#include "config.h"

#include <string.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include <ap_mpm.h>
#include <ap_provider.h>
#include <http_core.h>
#include <http_log.h>
#include <mod_auth.h>
#include <unixd.h>

#include "base/crypto.h"

extern module AP_MODULE_DECLARE_DATA downloads_module;
APLOG_USE_MODULE(downloads);

#define HTTPD_MAX_WORDS  64 /* server/config.c silently drops further words */
#define DBD_DEFAULT_MIN  1
#define DBD_DEFAULT_KEEP 2
#define DBD_DEFAULT_MAX  10 /* mod_dbd's */

static const char *directive_set(cmd_parms *cmd, void *unused, int argc, char *const argv[])
{
    mdl_settings_t *settings = mdl_config(cmd->server);
    const char *why = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    (void)unused;
    if (why != NULL) {
        return why;
    }
    if (argc >= HTTPD_MAX_WORDS) {
        return apr_psprintf(cmd->pool, "%s takes at most %d words in one line: repeat it for more.",
                            cmd->cmd->name, HTTPD_MAX_WORDS - 1);
    }
    why = mdl_settings_set(settings, cmd->cmd->name, argc, (const char *const *)argv, cmd->pool);
    return why != NULL ? apr_pstrcat(cmd->pool, cmd->cmd->name, " ", why, NULL) : NULL;
}

#define COMMAND(name, help) AP_INIT_TAKE_ARGV(name, directive_set, NULL, RSRC_CONF, help),

const command_rec mdl_config_commands[] = {MDL_DIRECTIVES(COMMAND){.name = NULL}};

void *mdl_config_create_server(apr_pool_t *p, server_rec *s)
{
    (void)s;
    return mdl_settings_create(p);
}

/*
 * The directives are refused inside of <VirtualHost>, so a virtual host never has a configuration
 * of its own for this module, and httpd hands it the main server's.
 */
mdl_settings_t *mdl_config(server_rec *s)
{
    return ap_get_module_config(s->module_config, &downloads_module);
}

enum { HANDLER_API, HANDLER_DELIVERY, HANDLER_UPLOAD, HANDLER_SETTINGS, HANDLER_METRICS, HANDLERS };

static const char *const handler_names[] = {"downloads-api", "downloads-delivery",
                                            "downloads-upload", "downloads-settings",
                                            "downloads-metrics"};

/* Where a handler is set. */
typedef struct {
    int found;
    int anywhere;                  /* not in a plain <Location>: its paths can't be told */
    apr_array_header_t *locations; /* const char *: paths */
} handler_t;

/* Threads that can share a connection: most of a request's time passes without it. */
#define THREADS_PER_CONNECTION 8

/* The state of a check, and what it has found. */
typedef struct {
    mdl_settings_t *settings;
    apr_array_header_t *errors; /* const char *: sentences */
    apr_array_header_t *warnings;
    apr_int64_t db_min; /* of mod_dbd's pool of connections: DBDMin, DBDKeep, DBDMax */
    apr_int64_t db_keep;
    apr_int64_t db_max;
    handler_t handlers[HANDLERS];
    apr_pool_t *pconf;
    apr_pool_t *ptemp;
} check_t;

static void sentence_add(apr_array_header_t *sentences, const char *sentence)
{
    APR_ARRAY_PUSH(sentences, const char *) = sentence;
}

static void walk_database(check_t *check, const ap_directive_t *node)
{
    const char *args = node->args;
    const char *word = ap_getword_conf(check->ptemp, &args);
    const char *why;

    if (strcasecmp(node->directive, "DBDMin") == 0) {
        check->db_min = apr_atoi64(word);
    } else if (strcasecmp(node->directive, "DBDKeep") == 0) {
        check->db_keep = apr_atoi64(word);
    } else if (strcasecmp(node->directive, "DBDMax") == 0) {
        check->db_max = apr_atoi64(word);
    } else if (strcasecmp(node->directive, "DBDriver") == 0 ||
               strcasecmp(node->directive, "DBDParams") == 0) {
        why = mdl_settings_set(check->settings, node->directive, 1, &word, check->pconf);
        if (why != NULL) {
            sentence_add(check->errors, apr_psprintf(check->ptemp, "%s:%d: %s %s", node->filename,
                                                     node->line_num, node->directive, why));
        }
    }
}

/* Whether a section says who may come in.  nodes is its first directive; sections within it, such
   as <RequireAny>, count. */
static int section_requires(const ap_directive_t *nodes)
{
    for (; nodes != NULL; nodes = nodes->next) {
        if (strcasecmp(nodes->directive, "Require") == 0 || section_requires(nodes->first_child)) {
            return 1;
        }
    }
    return 0;
}

/* Without Require httpd lets everybody in. */
static void walk_metrics(check_t *check, const ap_directive_t *node)
{
    const ap_directive_t *section = node->parent;

    if (section == NULL || !section_requires(section->first_child)) {
        sentence_add(
            check->errors,
            apr_psprintf(check->ptemp,
                         "%s:%d: %s downloads-metrics: its <Location> does not say who may "
                         "read the metrics: add Require, such as \"Require local\".",
                         node->filename, node->line_num, node->directive));
    }
}

static void walk_handler(check_t *check, const ap_directive_t *node, const char *location)
{
    const char *args = node->args;
    const char *word;

    if (strcasecmp(node->directive, "SetHandler") != 0 &&
        strcasecmp(node->directive, "AddHandler") != 0) {
        return;
    }
    word = ap_getword_conf(check->ptemp, &args);
    for (int i = 0; i < HANDLERS; i++) {
        handler_t *handler = &check->handlers[i];

        if (strcasecmp(word, handler_names[i]) == 0) {
            handler->found = 1;
            if (i == HANDLER_METRICS) {
                walk_metrics(check, node);
            }
            if (location != NULL) {
                APR_ARRAY_PUSH(handler->locations, const char *) = location;
            } else {
                handler->anywhere = 1;
            }
            return;
        }
    }
    if (strncasecmp(word, "downloads-", 10) == 0) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp,
                                  "%s:%d: %s: there is no handler %s; there are downloads-api, "
                                  "downloads-delivery, downloads-upload, downloads-settings and "
                                  "downloads-metrics.",
                                  node->filename, node->line_num, node->directive, word));
    }
}

/* The path of <Location>, or NULL for one with a pattern. */
static const char *location_of(check_t *check, const ap_directive_t *node)
{
    const char *args = apr_pstrndup(check->ptemp, node->args, strcspn(node->args, ">"));
    const char *path = ap_getword_conf(check->ptemp, &args);

    return path[0] == '/' && strpbrk(path, "*?[") == NULL ? path : NULL;
}

/* <IfModule>, Include and the like are resolved by now; other sections are nodes of the tree. */
static void config_walk(check_t *check, const ap_directive_t *node, int in_virtual_host,
                        const char *location)
{
    for (; node != NULL; node = node->next) {
        if (!in_virtual_host) {
            walk_database(check, node);
        }
        walk_handler(check, node, location);
        if (node->first_child != NULL) {
            config_walk(check, node->first_child,
                        in_virtual_host || strcasecmp(node->directive, "<VirtualHost") == 0,
                        strcasecmp(node->directive, "<Location") == 0 ? location_of(check, node)
                                                                      : location);
        }
    }
}

static void check_handlers(check_t *check)
{
    if (!check->handlers[HANDLER_API].found) {
        sentence_add(check->warnings,
                     "There is no \"SetHandler downloads-api\" in a <Location>: the API "
                     "can't be reached.");
    }
    if (!check->handlers[HANDLER_DELIVERY].found) {
        sentence_add(check->warnings,
                     "There is no \"SetHandler downloads-delivery\" in a <Location>: "
                     "customers can't reach their downloads.");
    }
    if (check->settings->upload_url != NULL && !check->handlers[HANDLER_UPLOAD].found) {
        sentence_add(check->warnings,
                     "DownloadsUploadURL is set, but there is no \"SetHandler "
                     "downloads-upload\" in a <Location>: uploads can be begun and never "
                     "sent.");
    }
    if ((check->settings->settings_url != NULL) != check->handlers[HANDLER_SETTINGS].found) {
        sentence_add(check->warnings,
                     "DownloadsSettingsURL and a <Location> with \"SetHandler downloads-settings\" "
                     "need each other: the settings can't be reached.");
    }
}

/* Whether the handler serves a URL's path; what is appended to a URL begins with a slash. */
static int is_served(const handler_t *handler, const char *path)
{
    for (int i = 0; i < handler->locations->nelts; i++) {
        const char *location = APR_ARRAY_IDX(handler->locations, i, const char *);
        apr_size_t length = strlen(location);

        if (strncmp(path, location, length) == 0 &&
            (location[length - 1] == '/' || path[length] == '/')) {
            return 1;
        }
    }
    return handler->anywhere || !handler->found;
}

static void check_path(check_t *check, const char *directive, const char *url, int handler)
{
    const char *path = url != NULL ? strchr(strstr(url, "://") + 3, '/') : NULL;

    path = path != NULL ? path : "";
    if (url != NULL &&
        !is_served(&check->handlers[handler], apr_pstrcat(check->ptemp, path, "/", NULL))) {
        sentence_add(
            check->warnings,
            apr_psprintf(check->ptemp,
                         "%s leads to %s, and no <Location> with \"SetHandler %s\" serves "
                         "that path (the first is %s): requests get 404, unless a proxy in "
                         "front changes the path.",
                         directive, url, handler_names[handler],
                         APR_ARRAY_IDX(check->handlers[handler].locations, 0, const char *)));
    }
}

static void check_modules(check_t *check)
{
    int threads = 0;

    if (ap_find_linked_module("mod_dbd.c") == NULL) {
        sentence_add(check->errors,
                     "mod_dbd is not loaded, and mod_downloads can do nothing without it: "
                     "add \"LoadModule dbd_module modules/mod_dbd.so\" (Debian: a2enmod "
                     "dbd).");
    }
    if (ap_find_linked_module("mod_reqtimeout.c") == NULL) {
        sentence_add(check->warnings,
                     "mod_reqtimeout is not loaded: clients that send a byte now and then can hold "
                     "every thread (Debian: a2enmod reqtimeout).");
    }
    if (check->db_min > check->db_keep || check->db_keep > check->db_max) {
        sentence_add(check->errors, apr_psprintf(check->ptemp,
                                                 "DBDMin (%" APR_INT64_T_FMT
                                                 ") must not exceed DBDKeep (%" APR_INT64_T_FMT
                                                 "), nor that DBDMax (%" APR_INT64_T_FMT
                                                 "): mod_dbd would make no connection at all.",
                                                 check->db_min, check->db_keep, check->db_max));
    }
    if (ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads) == APR_SUCCESS &&
        threads > check->db_max * THREADS_PER_CONNECTION) {
        sentence_add(
            check->warnings,
            apr_psprintf(check->ptemp,
                         "DBDMax (%" APR_INT64_T_FMT ") is less than an eighth of ThreadsPerChild "
                         "(%d): requests wait long for a connection under load. Set DBDMax to at "
                         "least %d.",
                         check->db_max, threads,
                         (threads + THREADS_PER_CONNECTION - 1) / THREADS_PER_CONNECTION));
    }
}

/* Beside mod_dbd's connections, of which a child without threads has one, each child has that of
   its settler, and httpd that of its background process, with two more while its alerts' tests
   run. */
static int config_connections(const check_t *check)
{
    int alerts = check->settings->alert_command != NULL || check->settings->alert_email != NULL;
    int threads = AP_MPMQ_NOT_SUPPORTED;
    int children = 1;

    ap_mpm_query(AP_MPMQ_IS_THREADED, &threads);
    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &children);
    return children * ((threads != AP_MPMQ_NOT_SUPPORTED ? (int)check->db_max : 1) + 1) + 1 +
           (alerts ? 2 : 0);
}

/* Users other than root and the secret's owner may test a configuration without the secret. */
static void config_check_secret(check_t *check)
{
    int testing = ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST;
    mdl_secret_t *secret;
    const char *why = NULL;
    apr_status_t rv;

    if (check->settings->secret_files->nelts == 0) {
        return;
    }
    rv = mdl_secret_read(&secret, check->settings->secret_files, &why, check->ptemp);
    if (rv == APR_SUCCESS) {
        return;
    }
    why = apr_pstrcat(check->ptemp, "DownloadsSecretFile: ", why, NULL);
    sentence_add(testing && geteuid() != 0 && APR_STATUS_IS_EACCES(rv) ? check->warnings
                                                                       : check->errors,
                 why);
}

/* Returns whether path is a folder; if not, an error is added. */
static int check_folder(check_t *check, const char *directive, const char *path, apr_finfo_t *info)
{
    char reason[120];
    apr_status_t rv = apr_stat(info, path, APR_FINFO_TYPE | APR_FINFO_PROT | APR_FINFO_OWNER,
                               check->ptemp);

    if (rv != APR_SUCCESS && rv != APR_INCOMPLETE) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp, "%s: the folder %s can't be used: %s.", directive,
                                  path, apr_strerror(rv, reason, sizeof reason)));
        return 0;
    }
    if (info->filetype != APR_DIR) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp, "%s: %s is not a folder.", directive, path));
        return 0;
    }
    return 1;
}

static void config_check_storage(check_t *check)
{
    uid_t user = geteuid() == 0 ? ap_unixd_config.user_id : geteuid();
    const char *path = check->settings->storage.folder;
    apr_finfo_t info;

    /* Only as root does the test know which user the server will run as. */
    if (path == NULL || !check_folder(check, "DownloadsStorage", path, &info) ||
        (geteuid() != 0 && ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST)) {
        return;
    }
    if (info.user != user || !(info.protection & APR_FPROT_UWRITE)) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp,
                                  "DownloadsStorage: %s must belong to the user that httpd "
                                  "runs as (uid %" APR_UINT64_T_FMT
                                  "), who must be able to write to it: chown and chmod it.",
                                  path, (apr_uint64_t)user));
    }
}

static void config_check_templates(check_t *check)
{
    apr_array_header_t *problems = apr_array_make(check->ptemp, 2, sizeof(const char *));
    const char *folder = check->settings->templates;
    apr_finfo_t info;

    if (folder == NULL || !check_folder(check, "DownloadsTemplates", folder, &info)) {
        return;
    }
    mdl_settings_check_templates(check->settings, problems, check->ptemp);
    for (int i = 0; i < problems->nelts; i++) {
        sentence_add(check->errors, apr_pstrcat(check->ptemp, "DownloadsTemplates: ",
                                                APR_ARRAY_IDX(problems, i, const char *), NULL));
    }
}

static void config_check_sign_in(check_t *check)
{
    const char *name = check->settings->settings_sign_in;
    const authn_provider *provider = name != NULL ? ap_lookup_provider(AUTHN_PROVIDER_GROUP, name,
                                                                       AUTHN_PROVIDER_VERSION)
                                                  : NULL;

    if (name != NULL && (provider == NULL || provider->check_password == NULL)) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp,
                                  "DownloadsSettingsSignIn: no module that is loaded checks "
                                  "passwords as the provider %s: load mod_authn_%s (Debian: "
                                  "a2enmod authn_%s).",
                                  name, name, name));
    }
    if (name != NULL && check->settings->settings_url == NULL) {
        sentence_add(check->errors, "DownloadsSettingsURL is missing: DownloadsSettingsSignIn says "
                                    "how people sign in there.");
    }
}

static void check_program(check_t *check, const char *directive, const char *path)
{
    if (path != NULL && access(path, X_OK) != 0) {
        sentence_add(check->errors,
                     apr_psprintf(check->ptemp, "%s: there is no program %s.", directive, path));
    }
}

/* Of transports only a program can be checked: a Maildir is made with the first email. */
static void check_programs(check_t *check)
{
    const char *transport = check->settings->mail.transport;

    if (transport != NULL && strncmp(transport, "sendmail:", 9) == 0) {
        check_program(check, "DownloadsMailTransport", transport + 9);
    }
    check_program(check, "DownloadsAlertCommand", check->settings->alert_command);
}

static void sentences_log(const check_t *check)
{
    int testing = ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST;
    int first_pass = ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG;
    int i;

    for (i = 0; i < check->errors->nelts; i++) {
        ap_log_error(APLOG_MARK, APLOG_ERR | APLOG_STARTUP, 0, NULL, "MDL0001: %s",
                     APR_ARRAY_IDX(check->errors, i, const char *));
    }
    /* A start runs this twice: warnings are logged once, in the pass whose log is kept. */
    for (i = 0; i < check->warnings->nelts && (testing || !first_pass); i++) {
        ap_log_error(APLOG_MARK, APLOG_WARNING | APLOG_STARTUP, 0, NULL, "MDL0002: %s",
                     APR_ARRAY_IDX(check->warnings, i, const char *));
    }
}

int mdl_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    check_t check = {.settings = mdl_config(s),
                     .errors = apr_array_make(ptemp, 8, sizeof(const char *)),
                     .warnings = apr_array_make(ptemp, 8, sizeof(const char *)),
                     .db_min = DBD_DEFAULT_MIN,
                     .db_keep = DBD_DEFAULT_KEEP,
                     .db_max = DBD_DEFAULT_MAX,
                     .pconf = pconf,
                     .ptemp = ptemp};

    (void)plog;
    /* -S, -M and -L only show things, and are used to find out what is wrong. */
    if (ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_DUMP) {
        return OK;
    }
    for (int i = 0; i < HANDLERS; i++) {
        check.handlers[i].locations = apr_array_make(ptemp, 1, sizeof(const char *));
    }
    config_walk(&check, ap_conftree, 0, NULL);
    check.settings->db_max = (int)check.db_max;
    check.settings->db_connections = config_connections(&check);
    if (!check.settings->configured) {
        check.errors->nelts = 0;
        if (check.handlers[HANDLER_API].found || check.handlers[HANDLER_DELIVERY].found ||
            check.handlers[HANDLER_UPLOAD].found) {
            sentence_add(check.warnings,
                         "A downloads- handler is set, but no Downloads* directive is: "
                         "mod_downloads does nothing.");
        }
        sentences_log(&check);
        return OK;
    }
    mdl_settings_check(check.settings, check.errors, pconf);
    mdl_settings_warn(check.settings, check.warnings, ptemp);
    check_modules(&check);
    check_handlers(&check);
    check_path(&check, "DownloadsPublicURL", check.settings->public_url, HANDLER_DELIVERY);
    check_path(&check, "DownloadsUploadURL", check.settings->upload_url, HANDLER_UPLOAD);
    check_path(&check, "DownloadsSettingsURL", check.settings->settings_url, HANDLER_SETTINGS);
    config_check_secret(&check);
    config_check_storage(&check);
    config_check_templates(&check);
    config_check_sign_in(&check);
    check_programs(&check);
    sentences_log(&check);
    return check.errors->nelts == 0 ? OK : !OK;
}
