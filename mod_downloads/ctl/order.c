#include "ctl/order.h"

#include <stddef.h>

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "core/order/diagnosis.h"
#include "core/order/resend.h"

#define FILES_SHOWN 1000

typedef struct {
    const char *storefront_order_id;
    apr_int64_t shop_id;
    const char *shop;
    const char *customer;
    int access;
    const char *access_reason;
    int fraud_decision;
    int email_status;
    const char *email_to;
    int email_attempts;
    const char *email_error;
    apr_time_t email_sent_at;
    apr_time_t created_at;
    apr_time_t updated_at;
    apr_time_t expires_at;
} shown_t;

static const mdl_field_t fields[] = {
    {"storefront_order_id", MDL_FIELD_TEXT, offsetof(shown_t, storefront_order_id), 1, NULL},
    {"shop_id", MDL_FIELD_NUMBER, offsetof(shown_t, shop_id), 1, NULL},
    {"shop", MDL_FIELD_TEXT, offsetof(shown_t, shop), 1, NULL},
    {"customer_email", MDL_FIELD_TEXT, offsetof(shown_t, customer), 1, NULL},
    {"access", MDL_FIELD_ENUM, offsetof(shown_t, access), 1, mdl_order_access_names},
    {"access_reason", MDL_FIELD_TEXT, offsetof(shown_t, access_reason), 1, NULL},
    {"fraud_decision", MDL_FIELD_ENUM, offsetof(shown_t, fraud_decision), 1,
     mdl_fraud_decision_names},
    {"email_status", MDL_FIELD_ENUM, offsetof(shown_t, email_status), 1, mdl_email_status_names},
    {"email_to", MDL_FIELD_TEXT, offsetof(shown_t, email_to), 1, NULL},
    {"email_attempts", MDL_FIELD_INT, offsetof(shown_t, email_attempts), 1, NULL},
    {"email_error", MDL_FIELD_TEXT, offsetof(shown_t, email_error), 1, NULL},
    {"email_sent_at", MDL_FIELD_TIME, offsetof(shown_t, email_sent_at), 1, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(shown_t, created_at), 1, NULL},
    {"updated_at", MDL_FIELD_TIME, offsetof(shown_t, updated_at), 1, NULL},
    {"expires_at", MDL_FIELD_TIME, offsetof(shown_t, expires_at), 1, NULL},
    {0},
};

typedef struct {
    const char *product;
    apr_int64_t assignment_id;
    apr_int64_t asset_id;
    const char *filename;
    int assignment;
    int status;
    int used;
    int limit;
} shown_file_t;

static const mdl_field_t file_fields[] = {
    {"assignment_id", MDL_FIELD_NUMBER, offsetof(shown_file_t, assignment_id), 1, NULL},
    {"storefront_product_id", MDL_FIELD_TEXT, offsetof(shown_file_t, product), 1, NULL},
    {"assignment_status", MDL_FIELD_ENUM, offsetof(shown_file_t, assignment), 1,
     mdl_assignment_status_names},
    {"asset_id", MDL_FIELD_NUMBER, offsetof(shown_file_t, asset_id), 1, NULL},
    {"filename", MDL_FIELD_TEXT, offsetof(shown_file_t, filename), 1, NULL},
    {"status", MDL_FIELD_ENUM, offsetof(shown_file_t, status), 1, mdl_asset_status_names},
    {"downloads_used", MDL_FIELD_INT, offsetof(shown_file_t, used), 1, NULL},
    {"download_limit", MDL_FIELD_INT, offsetof(shown_file_t, limit), 1, NULL},
    {0},
};

typedef struct {
    mdl_order_find_t find;
    mdl_problem_t problem;
} order_find_t;

static apr_status_t order_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    order_find_t *wanted = arg;
    apr_status_t rv = mdl_order_find(db, p, &wanted->find);

    return rv == APR_ENOENT ? mdl_order_refuse_unknown(&wanted->problem) : rv;
}

static int order_find(mdl_ctl_t *ctl, mdl_order_t **order)
{
    order_find_t wanted = {.find = {.shop_id = ctl->id,
                                    .storefront_order_id = ctl->arguments[1],
                                    .default_download_limit = ctl->settings->download_limit,
                                    .with_lookup = 1}};
    int failed = mdl_ctl_read(ctl, order_find_effect, &wanted, &wanted.problem);

    *order = wanted.find.order;
    return failed;
}

static shown_t order_shown(const mdl_order_t *order)
{
    return (shown_t){.storefront_order_id = order->storefront_order_id,
                     .shop_id = order->shop_id,
                     .shop = order->shop_name,
                     .customer = order->address,
                     .access = (int)order->state.access,
                     .access_reason = order->access_reason,
                     .fraud_decision = (int)order->state.decision,
                     .email_status = (int)order->email.status,
                     .email_to = order->email.to,
                     .email_attempts = order->email.attempts,
                     .email_error = order->email.last_error,
                     .email_sent_at = order->email.sent_at,
                     .created_at = order->created_at,
                     .updated_at = order->updated_at,
                     .expires_at = order->expires_at};
}

/* The first FILES_SHOWN files of an order. */
static apr_array_header_t *order_files(const mdl_order_t *order, apr_pool_t *p)
{
    apr_array_header_t *files = apr_array_make(p, 16, sizeof(shown_file_t *));

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *);

        for (int j = 0; j < each->files->nelts && files->nelts < FILES_SHOWN; j++) {
            const mdl_order_file_t *file = APR_ARRAY_IDX(each->files, j, mdl_order_file_t *);
            shown_file_t *shown = apr_pcalloc(p, sizeof *shown);

            *shown = (shown_file_t){.product = each->storefront_product_id,
                                    .assignment_id = each->id,
                                    .asset_id = file->asset_id,
                                    .filename = file->filename,
                                    .assignment = (int)each->status,
                                    .status = (int)file->status,
                                    .used = file->downloads.used,
                                    .limit = file->download_limit};
            APR_ARRAY_PUSH(files, shown_file_t *) = shown;
        }
    }
    return files;
}

int mdl_ctl_order_show(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p), *list;
    apr_array_header_t *files;
    mdl_order_t *order;
    shown_t shown;
    int failed = order_find(ctl, &order);

    if (failed) {
        return failed;
    }
    shown = order_shown(order);
    files = order_files(order, ctl->p);
    if (!mdl_printer_is_json(ctl->output)) {
        mdl_printer_record(ctl->output, fields, &shown);
        mdl_printer_line(ctl->output, "%s", "");
        mdl_printer_list(ctl->output, file_fields, files, "Nothing of it is a file.");
        if (files->nelts == FILES_SHOWN) {
            mdl_printer_line(ctl->output, "(no more than %d files are shown)", FILES_SHOWN);
        }
        return MDL_EXIT_DONE;
    }
    mdl_printer_fill(document, fields, &shown);
    list = mdl_json_add_array(document, "files");
    for (int i = 0; i < files->nelts; i++) {
        mdl_printer_fill(mdl_json_add_object(list, NULL), file_fields,
                         APR_ARRAY_IDX(files, i, const shown_file_t *));
    }
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}

int mdl_ctl_order_diagnose(mdl_ctl_t *ctl)
{
    static const char *const statuses[] = {
        [MDL_CHECK_OK] = "ok", [MDL_CHECK_WARN] = "warn", [MDL_CHECK_FAIL] = "fail"};
    mdl_json_t *document = mdl_json_object(ctl->p);
    mdl_json_t *checks = mdl_json_add_array(document, "checks");
    const mdl_diagnosis_t *diagnosis;
    mdl_storage_t *storage;
    mdl_order_t *order;
    int failed = order_find(ctl, &order);

    if (failed) {
        return failed;
    }
    mdl_storage_open(&storage, &ctl->settings->storage, ctl->p); /* NULL after an error */
    diagnosis = mdl_diagnosis_make(order, storage, ctl->p);
    for (int i = 0; i < MDL_CHECKS; i++) {
        const mdl_check_t *check = &diagnosis->checks[i];
        mdl_json_t *entry = mdl_json_add_object(checks, NULL);

        if (!ctl->quiet || check->status != MDL_CHECK_OK) {
            mdl_printer_line(ctl->output, "%-10s %-5s %s", mdl_check_names[i],
                             statuses[check->status], check->message);
        }
        mdl_json_add_string(entry, "name", mdl_check_names[i]);
        mdl_json_add_string(entry, "status", statuses[check->status]);
        mdl_json_add_string(entry, "message", check->message);
    }
    failed = diagnosis->first_failure < MDL_CHECKS;
    mdl_json_add_string(document, "first_failure",
                        failed ? mdl_check_names[diagnosis->first_failure] : NULL);
    mdl_printer_document(ctl->output, document);
    return failed ? MDL_EXIT_PROBLEM : MDL_EXIT_DONE;
}

MDL_EFFECT(mdl_order_resend, mdl_order_resend_t *)

int mdl_ctl_order_resend(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_order_resend_t resend = {.shop_id = ctl->id,
                                 .storefront_order_id = ctl->arguments[1],
                                 .user = ctl->audit.user,
                                 .to = ctl->email != NULL ? mdl_mime_address_of(ctl->email, ctl->p)
                                                          : NULL,
                                 .mail_host = mdl_settings_public_host(ctl->settings, ctl->p),
                                 .default_download_limit = ctl->settings->download_limit,
                                 .problem = &problem};
    shown_t shown;
    int failed;

    if (ctl->email != NULL && resend.to == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "invalid_email",
                            "The recipient is not an address.");
    }
    ctl->audit.shop_id = ctl->id;
    ctl->audit.noun_id = resend.storefront_order_id;
    failed = mdl_ctl_write(ctl, mdl_order_resend_effect, &resend, &problem);
    if (failed) {
        return failed;
    }
    shown = order_shown(resend.order);
    mdl_printer_result(ctl->output, fields, &shown, "The email of order %s is queued again, to %s.",
                       shown.storefront_order_id, shown.email_to);
    return MDL_EXIT_DONE;
}
