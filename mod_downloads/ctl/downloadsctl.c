#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_file_io.h>
#include <apr_general.h>
#include <apr_getopt.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "base/text/utf8.h"
#include "base/version.h"
#include "core/identifier.h"
#include "core/catalog/backup.h"
#include "core/job.h"
#include "core/shop/key.h"
#include "core/shop/shop.h"
#include "ctl/audit.h"
#include "ctl/backup.h"
#include "ctl/catalog.h"
#include "ctl/check.h"
#include "ctl/command.h"
#include "ctl/config.h"
#include "ctl/copy_database.h"
#include "ctl/customer.h"
#include "ctl/feed.h"
#include "ctl/job.h"
#include "ctl/key.h"
#include "ctl/mail.h"
#include "ctl/maintenance.h"
#include "ctl/member.h"
#include "ctl/migrate.h"
#include "ctl/order.h"
#include "ctl/restore.h"
#include "ctl/secret.h"
#include "ctl/shop.h"
#include "ctl/storage.h"
#include "ctl/storage_copy.h"
#include "ctl/trace.h"
#include "ctl/usage.h"

#define MAX_EXPIRES APR_INT64_C(3153600000) /* 100 years in seconds */

#define MAX_COPY_JOBS 64
#define MIN_COPY_RATE 65536 /* bytes a second */
#define MAX_WAIT      86400 /* seconds */

/* Options that only some commands take. */
#define OPTION_EMAIL   1
#define OPTION_SCOPE   2
#define OPTION_EXPIRES 4
#define OPTION_STATUS  8
#define OPTION_SHOP    16
#define OPTION_SET     32 /* the options of shop set */
#define OPTION_HTTPD   64
#define OPTION_REASON  128
#define OPTION_LIMIT   256
#define OPTION_FAILED  512
#define OPTION_TYPE    1024
#define OPTION_SINCE   2048
#define OPTION_VERIFY  4096 /* the options of storage verify */
#define OPTION_DRY_RUN 8192
#define OPTION_COPY    16384 /* the options of storage copy */
#define OPTION_KEEP    32768
#define OPTION_SEND    65536
#define OPTION_WAIT    131072
#define OPTION_SECRET  262144
#define OPTION_KEY     524288

enum {
    LETTER_EMAIL = 256,
    LETTER_SCOPE,
    LETTER_EXPIRES,
    LETTER_STATUS,
    LETTER_SHOP,
    LETTER_HTTPD,
    LETTER_VERSION,
    LETTER_NAME,
    LETTER_SENDER_NAME,
    LETTER_REPLY_TO,
    LETTER_WITHDRAWAL_URL,
    LETTER_MAIL_DELAY,
    LETTER_HOLD_AT,
    LETTER_DECLARATION,
    LETTER_HELP_REQUESTS,
    LETTER_DOWNLOAD_LIMIT,
    LETTER_ACCESS_DAYS,
    LETTER_LANGUAGES,
    LETTER_STOREFRONT,
    LETTER_STOREFRONT_TOKEN,
    LETTER_REASON,
    LETTER_LIMIT,
    LETTER_FAILED,
    LETTER_TYPE,
    LETTER_SINCE,
    LETTER_FULL,
    LETTER_REPAIR,
    LETTER_QUIET,
    LETTER_JOBS,
    LETTER_RATE,
    LETTER_KEEP,
    LETTER_SECRET,
    LETTER_SEND,
    LETTER_WAIT,
    LETTER_KEY,
    LETTER_DRY_RUN,
    LETTER_JSON
};

static const apr_getopt_option_t options[] = {
    {NULL, 'f', 1, NULL},
    {"json", LETTER_JSON, 0, NULL},
    {"help", 'h', 0, NULL},
    {"version", LETTER_VERSION, 0, NULL},
    {"httpd", LETTER_HTTPD, 1, NULL},
    {"quiet", LETTER_QUIET, 0, NULL},
    {"email", LETTER_EMAIL, 1, NULL},
    {"scope", LETTER_SCOPE, 1, NULL},
    {"expires", LETTER_EXPIRES, 1, NULL},
    {"status", LETTER_STATUS, 1, NULL},
    {"shop", LETTER_SHOP, 1, NULL},
    {"name", LETTER_NAME, 1, NULL},
    {"sender-name", LETTER_SENDER_NAME, 1, NULL},
    {"reply-to", LETTER_REPLY_TO, 1, NULL},
    {"withdrawal-url", LETTER_WITHDRAWAL_URL, 1, NULL},
    {"mail-delay", LETTER_MAIL_DELAY, 1, NULL},
    {"hold-at", LETTER_HOLD_AT, 1, NULL},
    {"declaration", LETTER_DECLARATION, 1, NULL},
    {"help-requests", LETTER_HELP_REQUESTS, 1, NULL},
    {"default-download-limit", LETTER_DOWNLOAD_LIMIT, 1, NULL},
    {"default-access-days", LETTER_ACCESS_DAYS, 1, NULL},
    {"languages", LETTER_LANGUAGES, 1, NULL},
    {"reason", LETTER_REASON, 1, NULL},
    {"limit", LETTER_LIMIT, 1, NULL},
    {"failed", LETTER_FAILED, 0, NULL},
    {"type", LETTER_TYPE, 1, NULL},
    {"since", LETTER_SINCE, 1, NULL},
    {"full", LETTER_FULL, 0, NULL},
    {"dry-run", LETTER_DRY_RUN, 0, NULL},
    {"repair", LETTER_REPAIR, 0, NULL},
    {"jobs", LETTER_JOBS, 1, NULL},
    {"rate", LETTER_RATE, 1, NULL},
    {"keep", LETTER_KEEP, 1, NULL},
    {"secret", LETTER_SECRET, 1, NULL},
    {"send-emails", LETTER_SEND, 0, NULL},
    {"wait", LETTER_WAIT, 1, NULL},
    {"key", LETTER_KEY, 1, NULL},
    {"storefront", LETTER_STOREFRONT, 1, NULL},
    {"storefront-token-file", LETTER_STOREFRONT_TOKEN, 1, NULL},
    {NULL, 0, 0, NULL},
};

static const mdl_command_t commands[] = {
    {"shop", "add", "NAME DOMAIN [--email ADDRESS] [--key KEY_NAME]", 2, 0,
     OPTION_EMAIL | OPTION_KEY, 0, mdl_ctl_shop_add, "shop", "created"},
    {"shop", "list", "", 0, 0, 0, 0, mdl_ctl_shop_list, NULL, NULL},
    {"shop", "set",
     "ID [--name TEXT] [--email ADDRESS] [--sender-name TEXT] [--reply-to ADDRESS] "
     "[--withdrawal-url URL] [--mail-delay MINUTES] [--hold-at medium|high] [--declaration on|off] "
     "[--help-requests off|on|first_by_itself] "
     "[--default-download-limit DOWNLOADS] [--default-access-days DAYS] [--languages TAGS] "
     "[--storefront URL] "
     "[--storefront-token-file FILE|-]",
     1, 1, OPTION_SET | OPTION_EMAIL, 0, mdl_ctl_shop_set, "shop", "changed"},
    {"shop", "approve", "ID", 1, 1, 0, 0, mdl_ctl_shop_approve, "shop", "approved"},
    {"shop", "suspend", "ID", 1, 1, 0, 0, mdl_ctl_shop_suspend, "shop", "suspended"},
    {"shop", "block", "ID --reason TEXT", 1, 1, OPTION_REASON, 0, mdl_ctl_shop_block, "shop",
     "blocked"},
    {"shop", "unblock", "ID", 1, 1, 0, 0, mdl_ctl_shop_unblock, "shop", "unblocked"},
    {"key", "create", "SHOP_ID NAME [--scope full|deliver|read] [--expires SECONDS]", 2, 1,
     OPTION_SCOPE | OPTION_EXPIRES, 0, mdl_ctl_key_create, "api_key", "created"},
    {"key", "list", "SHOP_ID", 1, 1, 0, 0, mdl_ctl_key_list, NULL, NULL},
    {"key", "revoke", "KEY_ID", 1, 0, 0, 0, mdl_ctl_key_revoke, "api_key", "revoked"},
    {"secret", "status", "", 0, 0, 0, 0, mdl_ctl_secret_status, NULL, NULL},
    {"secret", "retire", "", 0, 0, 0, 0, mdl_ctl_secret_retire, "secret", "retired"},
    {"feed", "renew", "", 0, 0, 0, 0, mdl_ctl_feed_renew, "feed", "renewed"},
    {"member", "add", "USER read-only|staff|owner|operator [--shop ID]", 2, 0, OPTION_SHOP, 0,
     mdl_ctl_member_add, "member", "saved"},
    {"member", "ask", "ADDRESS --shop ID", 1, 0, OPTION_SHOP, 0, mdl_ctl_member_ask, "member",
     "asked"},
    {"member", "list", "[--shop ID]", 0, 0, OPTION_SHOP, 0, mdl_ctl_member_list, NULL, NULL},
    {"member", "sign-out", "USER", 1, 0, 0, 0, mdl_ctl_member_sign_out, "member", "signed_out"},
    {"member", "remove", "USER [--shop ID]", 1, 0, OPTION_SHOP, 0, mdl_ctl_member_remove, "member",
     "deleted"},
    {"audit", NULL, "[--shop ID] [--limit N]", 0, 0, OPTION_SHOP | OPTION_LIMIT, 0, mdl_ctl_audit,
     NULL, NULL},
    {"maintenance", "on", "[--wait SECONDS]", 0, 0, OPTION_WAIT, 0, mdl_ctl_maintenance_on,
     "maintenance", "begun"},
    {"maintenance", "on", "--reason TEXT [--wait SECONDS]", 0, 0, OPTION_REASON | OPTION_WAIT, 0,
     mdl_ctl_maintenance_on, "maintenance", "begun"},
    {"maintenance", "off", "", 0, 0, 0, 0, mdl_ctl_maintenance_off, "maintenance", "completed"},
    {"maintenance", "status", "", 0, 0, 0, 0, mdl_ctl_maintenance_status, NULL, NULL},
    {"trace", NULL, "REQUEST_ID", 1, 0, 0, 0, mdl_ctl_trace, NULL, NULL},
    {"migrate", NULL, "[--dry-run]", 0, 0, OPTION_DRY_RUN, 0, mdl_ctl_migrate, NULL, NULL},
    {"copy-database", NULL, "sqlite3|pgsql PARAMS", 2, 0, 0, 0, mdl_ctl_copy_database, "database",
     "copied"},
    {"config", "explain", "", 0, 0, 0, 0, mdl_ctl_config_explain, NULL, NULL},
    {"check", NULL, "[--httpd COMMAND]", 0, 0, OPTION_HTTPD, 1, mdl_ctl_check, NULL, NULL},
    {"storage", "status", "", 0, 0, 0, 0, mdl_ctl_storage_status, NULL, NULL},
    {"storage", "copy", "folder object|object folder [--jobs N] [--rate BYTES]", 2, 0, OPTION_COPY,
     0, mdl_ctl_storage_copy, "storage", "copied"},
    {"storage", "verify", "[--full] [--repair]", 0, 0, OPTION_VERIFY, 0, mdl_ctl_storage_verify,
     "asset", "version_added"},
    {"storage", "clean", "folder|object", 1, 0, 0, 0, mdl_ctl_storage_clean, "storage", "cleaned"},
    {"storage", "hold", "", 0, 0, 0, 0, mdl_ctl_storage_hold, "storage", "held"},
    {"storage", "release", "HOLD|all", 1, 0, 0, 0, mdl_ctl_storage_release, "storage", "released"},
    {"backup", NULL, "FOLDER [--keep N] [--secret FILE]", 1, 0, OPTION_KEEP | OPTION_SECRET, 0,
     mdl_ctl_backup, "storage", "backed_up"},
    {"restore", NULL, "FOLDER [--send-emails]", 1, 0, OPTION_SEND, 0, mdl_ctl_restore, "storage",
     "restored"},
    {"mail", "test", "ADDRESS", 1, 0, 0, 0, mdl_ctl_mail_test, NULL, NULL},
    {"mail", "flush", "", 0, 0, 0, 0, mdl_ctl_mail_flush, "email", "flushed"},
    {"job", "list", "[--status STATUS] [--shop ID] [--limit N]", 0, 0,
     OPTION_STATUS | OPTION_SHOP | OPTION_LIMIT, 0, mdl_ctl_job_list, NULL, NULL},
    {"job", "show", "ID", 1, 0, 0, 0, mdl_ctl_job_show, NULL, NULL},
    {"job", "retry", "ID", 1, 0, 0, 0, mdl_ctl_job_retry, "job", "retried"},
    {"job", "retry", "--failed [--type TYPE] [--since TIME] [--shop ID]", 0, 0,
     OPTION_FAILED | OPTION_TYPE | OPTION_SINCE | OPTION_SHOP, 0, mdl_ctl_job_retry_failed, "job",
     "retried"},
    {"asset", "list", "SHOP_ID [--limit N]", 1, 1, OPTION_LIMIT, 0, mdl_ctl_asset_list, NULL, NULL},
    {"asset", "show", "SHOP_ID ASSET_ID", 2, 1, 0, 0, mdl_ctl_asset_show, NULL, NULL},
    {"mapping", "list", "SHOP_ID [--limit N]", 1, 1, OPTION_LIMIT, 0, mdl_ctl_mapping_list, NULL,
     NULL},
    {"mapping", "show", "SHOP_ID MAPPING_ID", 2, 1, 0, 0, mdl_ctl_mapping_show, NULL, NULL},
    {"customer", "list", "SHOP_ID [--email ADDRESS] [--limit N]", 1, 1, OPTION_EMAIL | OPTION_LIMIT,
     0, mdl_ctl_customer_list, NULL, NULL},
    {"customer", "show", "SHOP_ID CUSTOMER_ID", 2, 1, 0, 0, mdl_ctl_customer_show, NULL, NULL},
    {"order", "show", "SHOP_ID ORDER", 2, 1, 0, 0, mdl_ctl_order_show, NULL, NULL},
    {"order", "diagnose", "SHOP_ID ORDER", 2, 1, 0, 0, mdl_ctl_order_diagnose, NULL, NULL},
    {"order", "resend", "SHOP_ID ORDER [--email ADDRESS]", 2, 1, OPTION_EMAIL, 0,
     mdl_ctl_order_resend, "order", "email_resent"},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static int print_help(mdl_ctl_t *ctl)
{
    mdl_usage_help(commands, COMMANDS, ctl->p);
    return MDL_EXIT_DONE;
}

static int print_version(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);

    mdl_json_add_string(document, "version", MDL_VERSION);
    mdl_json_add_string(document, "build", mdl_build_name());
    mdl_printer_line(ctl->output, "downloadsctl %s", mdl_build_name());
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}

/* Accepts only digits, without a sign, a space or a leading zero, from 1 to max. */
static int option_parse_number(const char *text, apr_int64_t max, apr_int64_t *value)
{
    *value = mdl_identifier_parse(text);
    return *value != 0 && *value <= max;
}

/* Reads a whole number from min, which is 0 or 1, to max. */
static int parse_number(mdl_ctl_t *ctl, const char *option, const char *value, int min, int max,
                        int *number)
{
    apr_int64_t parsed = 0;

    if (!(min == 0 && strcmp(value, "0") == 0) && !option_parse_number(value, max, &parsed)) {
        return mdl_usage_fail(ctl, "%s is a whole number from %d to %d, not \"%s\".", option, min,
                              max, value);
    }
    *number = (int)parsed;
    return MDL_EXIT_DONE;
}

/* The same, of a value that an empty text clears: -1. */
static int parse_default(mdl_ctl_t *ctl, const char *option, const char *value, int min, int max,
                         int *number)
{
    *number = -1;
    return *value == '\0' ? MDL_EXIT_DONE : parse_number(ctl, option, value, min, max, number);
}

static int parse_text(mdl_ctl_t *ctl, const char *option, const char *value, const char **text)
{
    *text = value;
    return mdl_utf8_valid(value) ? MDL_EXIT_DONE : mdl_usage_fail(ctl, "%s is not UTF-8.", option);
}

/* Reads one option of job retry. */
static int parse_job_option(mdl_ctl_t *ctl, int letter, const char *value, int *given)
{
    int type;

    switch (letter) {
    case LETTER_FAILED:
        *given |= OPTION_FAILED;
        return MDL_EXIT_DONE;
    case LETTER_TYPE:
        *given |= OPTION_TYPE;
        ctl->type = value;
        type = mdl_names_find(mdl_job_type_names, value);
        return type >= 0 && type != MDL_JOB_UNKNOWN
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(ctl,
                                    "--type is asset_import, upload_verification, email, "
                                    "storefront_lookup, webhook, staff_email, logo, buyers_move, "
                                    "find_email, late_email, tell_buyers, news_email or "
                                    "customer_merge, not \"%s\".",
                                    value);
    default:
        *given |= OPTION_SINCE;
        return mdl_clock_parse(&ctl->since, value) == APR_SUCCESS
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(
                         ctl, "--since is a time such as 2026-11-21T08:30:00Z, not \"%s\".", value);
    }
}

/* Reads one option of shop set. */
static int parse_set_option(mdl_ctl_t *ctl, int letter, const char *value)
{
    const char *fault;
    int level;

    switch (letter) {
    case LETTER_NAME:
        return parse_text(ctl, "--name", value, &ctl->name);
    case LETTER_SENDER_NAME:
        return parse_text(ctl, "--sender-name", value, &ctl->sender_name);
    case LETTER_REPLY_TO:
        return parse_text(ctl, "--reply-to", value, &ctl->reply_to);
    case LETTER_WITHDRAWAL_URL:
        return parse_text(ctl, "--withdrawal-url", value, &ctl->withdrawal_url);
    case LETTER_MAIL_DELAY:
        return parse_number(ctl, "--mail-delay", value, 0, MDL_SHOP_MAIL_DELAY_MAX,
                            &ctl->mail_delay);
    case LETTER_DECLARATION:
        ctl->declaration = mdl_names_find(mdl_ctl_switch_names, value);
        return ctl->declaration >= 0
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(ctl, "--declaration is on or off, not \"%s\".", value);
    case LETTER_HELP_REQUESTS:
        ctl->help_requests = mdl_names_find(mdl_shop_help_names, value);
        return ctl->help_requests >= 0
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(
                         ctl, "--help-requests is off, on or first_by_itself, not \"%s\".", value);
    case LETTER_DOWNLOAD_LIMIT:
        return parse_default(ctl, "--default-download-limit", value, 0, MDL_SHOP_DOWNLOADS_MAX,
                             &ctl->download_limit);
    case LETTER_ACCESS_DAYS:
        return parse_default(ctl, "--default-access-days", value, 1, MDL_SHOP_DAYS_MAX,
                             &ctl->access_days);
    case LETTER_LANGUAGES:
        return parse_text(ctl, "--languages", value, &ctl->languages);
    case LETTER_STOREFRONT:
        return parse_text(ctl, "--storefront", value, &ctl->storefront);
    case LETTER_STOREFRONT_TOKEN:
        fault = mdl_ctl_shop_read_token(ctl, value);
        return fault == NULL ? MDL_EXIT_DONE
                             : mdl_usage_fail(ctl, "--storefront-token-file: %s", fault);
    default:
        level = mdl_names_find(mdl_risk_names, value);
        if (level < MDL_RISK_MEDIUM) {
            return mdl_usage_fail(ctl, "--hold-at is medium or high, not \"%s\".", value);
        }
        ctl->hold_at = (mdl_risk_t)level;
        return MDL_EXIT_DONE;
    }
}

/* Reads one option of storage copy. */
static int parse_copy_option(mdl_ctl_t *ctl, int letter, const char *value)
{
    if (letter == LETTER_JOBS) {
        return parse_number(ctl, "--jobs", value, 1, MAX_COPY_JOBS, &ctl->jobs);
    }
    return option_parse_number(value, APR_INT64_MAX, &ctl->rate) && ctl->rate >= MIN_COPY_RATE
               ? MDL_EXIT_DONE
               : mdl_usage_fail(ctl,
                                "--rate is a whole number of bytes a second from %d, not \"%s\".",
                                MIN_COPY_RATE, value);
}

/* Reads one option.  If only some commands take it, its bit is added to *given. */
static int parse_option(mdl_ctl_t *ctl, int letter, const char *value, int *given)
{
    switch (letter) {
    case 'f':
        ctl->file = value;
        ctl->file_given = 1;
        return MDL_EXIT_DONE;
    case LETTER_HTTPD:
        *given |= OPTION_HTTPD;
        ctl->httpd = value;
        return MDL_EXIT_DONE;
    case LETTER_QUIET:
        ctl->quiet = 1;
        mdl_printer_be_quiet(ctl->output);
        return MDL_EXIT_DONE;
    case LETTER_EMAIL:
        *given |= OPTION_EMAIL;
        return parse_text(ctl, "--email", value, &ctl->email);
    case LETTER_KEY:
        *given |= OPTION_KEY;
        return parse_text(ctl, "--key", value, &ctl->key_name);
    case LETTER_SCOPE:
        *given |= OPTION_SCOPE;
        ctl->scope = value;
        return mdl_names_find(mdl_key_scope_names, value) >= 0
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(ctl, "--scope is full, deliver or read, not \"%s\".", value);
    case LETTER_EXPIRES:
        *given |= OPTION_EXPIRES;
        return option_parse_number(value, MAX_EXPIRES, &ctl->expires_s)
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(
                         ctl,
                         "--expires is a whole number of seconds from 1 to %" APR_INT64_T_FMT
                         ", not \"%s\".",
                         MAX_EXPIRES, value);
    case LETTER_STATUS:
        *given |= OPTION_STATUS;
        ctl->status = value;
        return mdl_names_find(mdl_job_status_names, value) >= 0
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(
                         ctl,
                         "--status is queued, running, succeeded, failed or cancelled, not "
                         "\"%s\".",
                         value);
    case LETTER_REASON:
        *given |= OPTION_REASON;
        return parse_text(ctl, "--reason", value, &ctl->reason);
    case LETTER_SHOP:
        *given |= OPTION_SHOP;
        return option_parse_number(value, MDL_IDENTIFIER_MAX, &ctl->shop_id)
                   ? MDL_EXIT_DONE
                   : mdl_usage_fail(ctl, "--shop is the number of a shop, not \"%s\".", value);
    case LETTER_LIMIT:
        *given |= OPTION_LIMIT;
        return parse_number(ctl, "--limit", value, 1, MDL_CTL_SHOWN_MOST, &ctl->limit);
    case LETTER_KEEP:
        *given |= OPTION_KEEP;
        return parse_number(ctl, "--keep", value, 1, MDL_BACKUP_KEEP_MAX, &ctl->keep);
    case LETTER_SECRET:
        *given |= OPTION_SECRET;
        return parse_text(ctl, "--secret", value, &ctl->secret_file);
    case LETTER_SEND:
        *given |= OPTION_SEND;
        ctl->send_emails = 1;
        return MDL_EXIT_DONE;
    case LETTER_FAILED:
    case LETTER_TYPE:
    case LETTER_SINCE:
        return parse_job_option(ctl, letter, value, given);
    case LETTER_DRY_RUN:
        *given |= OPTION_DRY_RUN;
        ctl->dry_run = 1;
        return MDL_EXIT_DONE;
    case LETTER_FULL:
    case LETTER_REPAIR:
        *given |= OPTION_VERIFY;
        *(letter == LETTER_FULL ? &ctl->full : &ctl->repair) = 1;
        return MDL_EXIT_DONE;
    case LETTER_JOBS:
    case LETTER_RATE:
        *given |= OPTION_COPY;
        return parse_copy_option(ctl, letter, value);
    case LETTER_WAIT:
        *given |= OPTION_WAIT;
        return parse_number(ctl, "--wait", value, 0, MAX_WAIT, &ctl->wait);
    default:
        *given |= OPTION_SET;
        return parse_set_option(ctl, letter, value);
    }
}

/* Reports an error of apr_getopt, without the program's name and the line's end. */
static void report_getopt_error(void *baton, const char *format, ...)
{
    mdl_ctl_t *ctl = baton;
    va_list arguments;
    const char *message;
    const char *start;

    va_start(arguments, format);
    message = apr_pvsprintf(ctl->p, format, arguments);
    va_end(arguments);
    start = strstr(message, ": ");
    start = start != NULL ? start + 2 : message;
    mdl_usage_fail(ctl, "%s; try downloadsctl --help.",
                   apr_pstrmemdup(ctl->p, start, strcspn(start, "\n")));
}

/* Looks for --json before the options are parsed, so that their errors are printed as JSON, too. */
static void parse_json_option(mdl_ctl_t *ctl, int argc, const char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            mdl_printer_use_json(ctl->output);
        }
    }
}

static int command_is_named(const mdl_command_t *command, const char *const *arguments, int count)
{
    return count > 0 && strcmp(arguments[0], command->noun) == 0 &&
           (command->verb == NULL || (count > 1 && strcmp(arguments[1], command->verb) == 0));
}

/* Whether the command takes this number of arguments and these options. */
static int command_takes(const mdl_command_t *command, int count, int given)
{
    return count - (command->verb != NULL ? 2 : 1) == command->count &&
           !(given & ~command->options) &&
           !(command->options & (OPTION_REASON | OPTION_FAILED) & ~given) &&
           (given || !(command->options & OPTION_SET));
}

/* Finds the form of a command that fits; the first form if none fits. */
static const mdl_command_t *command_find(const char *const *arguments, int count, int given)
{
    const mdl_command_t *found = NULL;

    for (apr_size_t i = 0; i < COMMANDS; i++) {
        const mdl_command_t *command = &commands[i];

        if (command_is_named(command, arguments, count) &&
            (found == NULL || command_takes(command, count, given))) {
            found = command;
        }
    }
    return found;
}

/* Checks the arguments against the command that they name. */
static int parse_arguments(mdl_ctl_t *ctl, const char *const *arguments, int count, int given,
                           const mdl_command_t **command)
{
    const mdl_command_t *found = command_find(arguments, count, given);
    int own;

    if (count > 0 && strcmp(arguments[0], "help") == 0) {
        return print_help(ctl);
    }
    if (found == NULL) {
        return mdl_usage_fail_unknown(ctl, commands, COMMANDS, arguments, count);
    }
    own = found->verb != NULL ? 2 : 1;
    ctl->arguments = arguments + own;
    if (!command_takes(found, count, given)) {
        return mdl_usage_fail(ctl, "%s", mdl_usage_of(found, commands, COMMANDS, ctl->p));
    }
    if (found->numbered && !option_parse_number(ctl->arguments[0], MDL_IDENTIFIER_MAX, &ctl->id)) {
        return mdl_usage_fail(ctl, "%s takes the number of a shop, not \"%s\".",
                              mdl_usage_name(found, ctl->p), ctl->arguments[0]);
    }
    for (int i = 0; i < found->count; i++) {
        if (!mdl_utf8_valid(ctl->arguments[i])) {
            return mdl_usage_fail(ctl, "An argument is not UTF-8.");
        }
    }
    *command = found;
    return MDL_EXIT_DONE;
}

/* Trims the arguments like values in a request or a form (contract, section 1). */
static const char *const *arguments_trimmed(int argc, const char *const *argv, apr_pool_t *p)
{
    const char **trimmed = apr_pcalloc(p, (apr_size_t)(argc + 1) * sizeof *trimmed);

    for (int i = 0; i < argc; i++) {
        trimmed[i] = mdl_utf8_trimmed(argv[i], p);
    }
    return trimmed;
}

/* *command stays NULL if nothing is left to do. */
static int parse_command_line(mdl_ctl_t *ctl, int argc, const char *const *argv,
                              const mdl_command_t **command)
{
    apr_getopt_t *parser;
    const char *value;
    int failed = MDL_EXIT_DONE;
    int given = 0;
    int letter;
    apr_status_t rv;

    argv = arguments_trimmed(argc, argv, ctl->p);
    parse_json_option(ctl, argc, argv);
    apr_getopt_init(&parser, ctl->p, argc, argv);
    parser->interleave = 1;
    parser->errfn = report_getopt_error;
    parser->errarg = ctl;
    while ((rv = apr_getopt_long(parser, options, &letter, &value)) == APR_SUCCESS) {
        if (letter == 'h') {
            return print_help(ctl);
        }
        if (letter == LETTER_VERSION) {
            return print_version(ctl);
        }
        if (letter != LETTER_JSON && (failed = parse_option(ctl, letter, value, &given))) {
            return failed;
        }
    }
    if (rv != APR_EOF) {
        return MDL_EXIT_USAGE;
    }
    return parse_arguments(ctl, parser->argv + parser->ind, argc - parser->ind, given, command);
}

static int command_run(mdl_ctl_t *ctl, const mdl_command_t *command)
{
    ctl->audit = (mdl_audit_t){.shop_id = strcmp(command->noun, "shop") == 0 ? ctl->id
                                                                             : ctl->shop_id,
                               .noun = command->audit_noun,
                               .noun_id = command->count > 0 ? ctl->arguments[0] : NULL,
                               .action = command->audit_action,
                               .via = MDL_VIA_COMMAND,
                               .user = mdl_ctl_user(ctl->p)};
    if (command->reports_problems) {
        mdl_httpd_ask(&ctl->report, ctl->httpd != NULL ? ctl->httpd : mdl_httpd_command(),
                      ctl->file, ctl->p);
    }
    mdl_ctl_configure(ctl);
    if (!command->reports_problems) {
        if (ctl->problems->nelts) {
            return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration",
                                apr_array_pstrcat(ctl->p, ctl->problems, ' '));
        }
        if (ctl->no_owner != NULL) {
            return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_owner);
        }
    }
    return command->run(ctl);
}

static void log_to_stderr(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                          const char *message)
{
    char reason[120];

    (void)file;
    (void)line;
    if (level <= MDL_LOG_WARNING) {
        fprintf(stderr, "downloadsctl: %s%s%s\n", message, rv ? ": " : "",
                rv ? apr_strerror(rv, reason, sizeof reason) : "");
    }
}

int main(int argc, const char *const *argv)
{
    const mdl_command_t *command = NULL;
    mdl_ctl_t ctl = {.file = MDL_CONF_FILE,
                     .mail_delay = -1,
                     .declaration = MDL_CTL_KEEP,
                     .help_requests = MDL_CTL_KEEP,
                     .download_limit = MDL_CTL_KEEP,
                     .access_days = MDL_CTL_KEEP,
                     .wait = -1};
    int exit_code;

    if (apr_app_initialize(&argc, &argv, NULL) != APR_SUCCESS) {
        fputs("downloadsctl: APR can't be initialized.\n", stderr);
        return MDL_EXIT_CONFIGURATION;
    }
    atexit(apr_terminate);
    mdl_log_set_sink(log_to_stderr);
    apr_pool_create(&ctl.p, NULL);
    apr_pool_tag(ctl.p, "downloadsctl");
    ctl.output = mdl_printer_create(ctl.p);

    exit_code = parse_command_line(&ctl, argc, argv, &command);
    if (command != NULL) {
        exit_code = command_run(&ctl, command);
    }
    if (!mdl_printer_finish()) {
        fputs("downloadsctl: standard output can't be written.\n", stderr);
        exit_code = MDL_EXIT_OUTPUT;
    }
    return exit_code;
}
