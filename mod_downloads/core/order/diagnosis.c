#include "core/order/diagnosis.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "base/text/present.h"
#include "core/catalog/product.h"
#include "storage/storage.h"

const char *const mdl_check_names[MDL_CHECKS] = {"recipient", "email",  "page",      "mapping",
                                                 "fraud",     "access", "allowance", "file"};

typedef struct {
    const mdl_order_t *order;
    const mdl_storage_t *storage;
    apr_time_t now;
    apr_pool_t *pool;
    mdl_diagnosis_t *diagnosis;
} run_t;

static void diagnosis_report(run_t *run, mdl_check_name_t name, mdl_check_status_t status,
                             const char *finding, const char *message)
{
    mdl_check_t *check = &run->diagnosis->checks[name];

    check->status = status;
    check->finding = finding;
    check->message = message;
}

/* Adds a value that the message mentions. */
static void diagnosis_fact(run_t *run, mdl_check_name_t name, const char *fact, const char *value)
{
    mdl_json_add_string(run->diagnosis->checks[name].facts, fact, value);
}

static void diagnosis_count(run_t *run, mdl_check_name_t name, const char *fact, apr_int64_t value)
{
    diagnosis_fact(run, name, fact, apr_psprintf(run->pool, "%" APR_INT64_T_FMT, value));
}

/* Adds the time that the finding is about; 0: none. */
static void diagnosis_time(run_t *run, mdl_check_name_t name, apr_time_t at)
{
    mdl_present_date(run->diagnosis->checks[name].facts, "at", at);
}

/* OK if nothing is faulty, a warning if something is, a failure if everything is. */
static mdl_check_status_t diagnosis_share(int faulty, int all)
{
    if (faulty == 0) {
        return MDL_CHECK_OK;
    }
    return faulty == all ? MDL_CHECK_FAIL : MDL_CHECK_WARN;
}

static const mdl_assignment_t *diagnosis_assignment_at(const run_t *run, int i)
{
    return APR_ARRAY_IDX(run->order->assignments, i, const mdl_assignment_t *);
}

static void diagnosis_check_recipient(run_t *run)
{
    const char *email = run->order->address;
    int has_lookup = run->order->has_lookup;
    mdl_job_status_t status = run->order->lookup_status;

    if (email == NULL && has_lookup && (status == MDL_JOB_QUEUED || status == MDL_JOB_RUNNING)) {
        diagnosis_report(
            run, MDL_CHECK_RECIPIENT, MDL_CHECK_WARN, "recipient_awaited",
            run->order->lookup_error == NULL
                ? "The storefront is being asked for the customer's email address."
                : apr_pstrcat(run->pool,
                              "The storefront is asked again for the customer's email address; so "
                              "far: ",
                              run->order->lookup_error, NULL));
    } else if (email == NULL && run->order->lookup_error != NULL) {
        diagnosis_report(
            run, MDL_CHECK_RECIPIENT, MDL_CHECK_FAIL, "recipient_not_asked",
            apr_pstrcat(run->pool,
                        "The customer has no email address, since the storefront could not be "
                        "asked: ",
                        run->order->lookup_error, NULL));
    } else if (email == NULL && has_lookup && status == MDL_JOB_SUCCEEDED) {
        diagnosis_report(run, MDL_CHECK_RECIPIENT, MDL_CHECK_FAIL, "recipient_unknown",
                         "The storefront knows no email address of the customer: send the email "
                         "again to one that you know, or hand over the download page's address "
                         "yourself.");
    } else if (email == NULL) {
        diagnosis_report(
            run, MDL_CHECK_RECIPIENT, MDL_CHECK_FAIL, "recipient_missing",
            "The customer has no email address: send the email again to one that you know, or hand "
            "over the download page's address yourself.");
    } else {
        diagnosis_report(run, MDL_CHECK_RECIPIENT, MDL_CHECK_OK, "recipient_known",
                         apr_psprintf(run->pool, "The customer's address is %s.", email));
    }
    diagnosis_fact(run, MDL_CHECK_RECIPIENT, "address", email);
    diagnosis_fact(run, MDL_CHECK_RECIPIENT, "error", run->order->lookup_error);
}

static void diagnosis_check_queued_email(run_t *run)
{
    const mdl_email_state_t *email = &run->order->email;
    apr_pool_t *p = run->pool;
    const char *finding, *sentence;

    if (mdl_email_is_awaited(email)) {
        finding = "email_awaits_address";
        sentence = "The delivery email waits for the customer's address from the storefront.";
    } else if (email->status == MDL_EMAIL_HELD) {
        finding = "email_held";
        sentence = apr_psprintf(p, "The delivery email to %s is sent once the order is released.",
                                email->to);
    } else if (email->last_error == NULL) {
        finding = "email_waits";
        sentence = apr_psprintf(p, "The delivery email to %s waits to be sent.", email->to);
    } else if (email->attempts == 0) {
        finding = "email_delayed";
        sentence = apr_psprintf(p, "The delivery email to %s waits: %s", email->to,
                                email->last_error);
    } else {
        finding = "email_tried_again";
        sentence = apr_psprintf(p, "The delivery email to %s is tried again; so far: %s", email->to,
                                email->last_error);
    }
    diagnosis_report(run, MDL_CHECK_EMAIL, MDL_CHECK_WARN, finding, sentence);
}

static void diagnosis_check_failed_email(run_t *run)
{
    const mdl_email_state_t *email = &run->order->email;
    const char *why = email->last_error;
    apr_pool_t *p = run->pool;
    const char *finding = "email_without_address", *sentence;

    if (email->status == MDL_EMAIL_NO_RECIPIENT && why == NULL) {
        sentence = "The delivery email was not sent, since there was no address then: resend it.";
    } else if (email->status == MDL_EMAIL_NO_RECIPIENT) {
        sentence = apr_pstrcat(
            p, "The delivery email was not sent, since there was no address: ", why, NULL);
    } else {
        finding = email->status == MDL_EMAIL_BOUNCED ? "email_came_back" : "email_failed";
        sentence = apr_psprintf(p, "The delivery email to %s %s: %s", email->to,
                                email->status == MDL_EMAIL_BOUNCED ? "came back"
                                                                   : "was not delivered",
                                why != NULL ? why : "no reason is known");
    }
    diagnosis_report(run, MDL_CHECK_EMAIL, MDL_CHECK_FAIL, finding, sentence);
}

static void diagnosis_check_email(run_t *run)
{
    const mdl_email_state_t *email = &run->order->email;

    switch (email->status) {
    case MDL_EMAIL_NOT_REQUESTED:
        diagnosis_report(run, MDL_CHECK_EMAIL, MDL_CHECK_WARN, "email_not_asked",
                         "No delivery email was asked for: the customer knows the page only if you "
                         "passed on its address.");
        break;
    case MDL_EMAIL_QUEUED:
    case MDL_EMAIL_HELD:
        diagnosis_check_queued_email(run);
        break;
    case MDL_EMAIL_SENT:
        diagnosis_report(run, MDL_CHECK_EMAIL, MDL_CHECK_OK, "email_sent",
                         apr_psprintf(run->pool, "The delivery email to %s was handed over on %s.",
                                      email->to, mdl_present_date_text(email->sent_at, run->pool)));
        break;
    case MDL_EMAIL_FAILED:
    case MDL_EMAIL_NO_RECIPIENT:
    case MDL_EMAIL_BOUNCED:
        diagnosis_check_failed_email(run);
        break;
    }
    diagnosis_time(run, MDL_CHECK_EMAIL, email->sent_at);
    diagnosis_fact(run, MDL_CHECK_EMAIL, "to", email->to);
    diagnosis_fact(run, MDL_CHECK_EMAIL, "error", email->last_error);
}

static void diagnosis_check_page(run_t *run)
{
    int assignments = run->order->assignments->nelts;

    if (assignments == 0) {
        diagnosis_report(run, MDL_CHECK_PAGE, MDL_CHECK_FAIL, "page_empty",
                         "The download page is empty: nothing is assigned to the order.");
    } else {
        diagnosis_report(run, MDL_CHECK_PAGE, MDL_CHECK_OK, "page_there",
                         apr_psprintf(run->pool,
                                      "The download page is there, with %d assignment%s.",
                                      assignments, assignments == 1 ? "" : "s"));
    }
    diagnosis_count(run, MDL_CHECK_PAGE, "count", assignments);
}

static void diagnosis_product(run_t *run, const mdl_assignment_t *assignment)
{
    mdl_product_json(run->diagnosis->checks[MDL_CHECK_MAPPING].facts, assignment->title,
                     assignment->storefront_product_id, run->pool);
}

static int assignment_is_empty(const mdl_assignment_t *assignment)
{
    return assignment->files->nelts == 0 && assignment->links->nelts == 0 &&
           assignment->license_keys->nelts == 0 && assignment->license_keys_pending == 0;
}

static void diagnosis_check_mapping(run_t *run)
{
    int all = run->order->assignments->nelts, empty = 0;
    const mdl_assignment_t *last = NULL, *inactive = NULL;
    const char *tags = run->order->waiting_tags;
    apr_int64_t pending = 0, keys = 0;

    for (int i = 0; i < all; i++) {
        const mdl_assignment_t *assignment = diagnosis_assignment_at(run, i);

        if (assignment_is_empty(assignment)) {
            empty++;
            last = assignment;
        }
        if (!assignment->mapping_active) {
            inactive = assignment;
        }
        pending += assignment->license_keys_pending;
        keys += assignment->license_keys_pending + assignment->license_keys->nelts;
    }
    if (empty > 0) {
        diagnosis_report(run, MDL_CHECK_MAPPING, diagnosis_share(empty, all), "mapping_empty",
                         apr_psprintf(run->pool,
                                      "Mapping %" APR_INT64_T_FMT
                                      " has no content, so that assignment %" APR_INT64_T_FMT
                                      " gives nothing: %d of %d assignment%s.",
                                      last->mapping_id, last->id, empty, all, all == 1 ? "" : "s"));
        diagnosis_product(run, last);
        diagnosis_count(run, MDL_CHECK_MAPPING, "empty", empty);
        diagnosis_count(run, MDL_CHECK_MAPPING, "all", all);
    } else if (pending > 0 && tags == NULL) {
        diagnosis_report(run, MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_keys_later",
                         apr_psprintf(run->pool,
                                      "%" APR_INT64_T_FMT
                                      " license key%s handed out once access is given.",
                                      pending, pending == 1 ? " is" : "s are"));
    } else if (pending > 0) {
        diagnosis_report(
            run, MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_keys_missing",
            apr_psprintf(run->pool,
                         "%" APR_INT64_T_FMT " license key%s: add keys to license-key tag%s %s.",
                         pending, pending == 1 ? " is still missing" : "s are still missing",
                         strchr(tags, ',') != NULL ? "s" : "", tags));
        diagnosis_fact(run, MDL_CHECK_MAPPING, "tags", tags);
    } else if (inactive != NULL) {
        diagnosis_report(run, MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_inactive",
                         apr_psprintf(run->pool,
                                      "Mapping %" APR_INT64_T_FMT
                                      " is not active: it serves this order, but no new one.",
                                      inactive->mapping_id));
        diagnosis_product(run, inactive);
    } else {
        diagnosis_report(run, MDL_CHECK_MAPPING, MDL_CHECK_OK, "mapping_full",
                         "Every assignment has content.");
    }
    diagnosis_count(run, MDL_CHECK_MAPPING, "keys", pending);
    diagnosis_count(run, MDL_CHECK_MAPPING, "all_keys", keys);
}

/* The fraud check's sentences, each with a space before it, and as the fact "signals". */
static const char *signals_report(run_t *run)
{
    const mdl_json_t *signals = mdl_json_stored(run->order->fraud_signals, run->pool);
    mdl_json_t *to = mdl_json_add_array(run->diagnosis->checks[MDL_CHECK_FRAUD].facts, "signals");
    const char *sentences = "";

    for (apr_size_t i = 0; i < mdl_json_length(signals); i++) {
        const mdl_json_t *signal = mdl_json_element(signals, i);
        const char *message = mdl_json_string(mdl_json_member(signal, "message"));
        mdl_json_t *fact = mdl_json_add_object(to, NULL);

        mdl_json_add_string(fact, "code", mdl_json_string(mdl_json_member(signal, "code")));
        mdl_json_add_string(fact, "message", message);
        sentences = apr_pstrcat(run->pool, sentences, " ", message, NULL);
    }
    return sentences;
}

static const char *const decision_findings[] = {[MDL_FRAUD_NOT_CHECKED] = "fraud_not_checked",
                                                [MDL_FRAUD_PASSED] = "fraud_is_passed",
                                                [MDL_FRAUD_HELD] = "fraud_review",
                                                [MDL_FRAUD_APPROVED] = "fraud_approved",
                                                [MDL_FRAUD_REJECTED] = "fraud_rejected"};

static const char *decision_text(const mdl_order_t *order)
{
    switch (order->state.decision) {
    case MDL_FRAUD_NOT_CHECKED:
        return "No fraud check was asked for.";
    case MDL_FRAUD_PASSED:
        return "The fraud check is passed.";
    case MDL_FRAUD_APPROVED:
        return "The order was held and is approved.";
    case MDL_FRAUD_REJECTED:
        return "The order was rejected: approve it to release its downloads.";
    case MDL_FRAUD_HELD:
        break;
    }
    return order->risk_pending
               ? "The fraud check is done once the storefront has answered; the order is held "
                 "until then."
               : "The order is under review: approve or reject it.";
}

static void diagnosis_check_fraud(run_t *run)
{
    mdl_fraud_decision_t decision = run->order->state.decision;
    int failed = decision == MDL_FRAUD_HELD || decision == MDL_FRAUD_REJECTED;

    diagnosis_report(run, MDL_CHECK_FRAUD, failed ? MDL_CHECK_FAIL : MDL_CHECK_OK,
                     decision_findings[decision],
                     apr_pstrcat(run->pool, decision_text(run->order), signals_report(run), NULL));
    diagnosis_fact(run, MDL_CHECK_FRAUD, "storefront_asked",
                   run->order->risk_pending ? "asked" : NULL);
}

static const char *closed_text(const run_t *run, int revoked, int expired, int all)
{
    if (revoked == all) {
        return "Every assignment is revoked: restore them.";
    }
    if (expired == all) {
        return "Access has expired: extend it by grant-downloads with extend_days.";
    }
    return apr_psprintf(run->pool, "Of %d assignment%s, %d revoked and %d expired.", all,
                        all == 1 ? "" : "s", revoked, expired);
}

static void diagnosis_check_access(run_t *run)
{
    const mdl_order_t *order = run->order;
    int all = order->assignments->nelts, revoked = 0, expired = 0;

    if (order->state.access == MDL_ORDER_REVOKED) {
        diagnosis_report(run, MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_revoked",
                         apr_pstrcat(run->pool, "Access to the order is revoked",
                                     order->access_reason != NULL ? ": " : ".",
                                     order->access_reason, NULL));
        diagnosis_fact(run, MDL_CHECK_ACCESS, "reason", order->access_reason);
        return;
    }
    if (order->state.access != MDL_ORDER_ACTIVE) {
        diagnosis_report(run, MDL_CHECK_ACCESS, MDL_CHECK_FAIL,
                         order->state.access == MDL_ORDER_HELD ? "access_held" : "access_rejected",
                         apr_psprintf(run->pool, "Access to the order is %s.",
                                      mdl_order_access_names[order->state.access]));
        return;
    }
    for (int i = 0; i < all; i++) {
        mdl_entitlement_t entitlement = mdl_assignment_entitlement(diagnosis_assignment_at(run, i),
                                                                   run->now);

        revoked += entitlement == MDL_ENTITLEMENT_REVOKED;
        expired += entitlement == MDL_ENTITLEMENT_EXPIRED;
    }
    if (order->undeclared && revoked + expired < all) {
        diagnosis_report(run, MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_undeclared",
                         "The customer has yet to declare on the page that the delivery may "
                         "begin.");
    } else if (revoked + expired > 0) {
        diagnosis_report(run, MDL_CHECK_ACCESS, diagnosis_share(revoked + expired, all),
                         revoked == all   ? "access_all_revoked"
                         : expired == all ? "access_expired"
                                          : "access_partly",
                         closed_text(run, revoked, expired, all));
    } else {
        diagnosis_report(run, MDL_CHECK_ACCESS, MDL_CHECK_OK, "access_given", "Access is given.");
    }
    diagnosis_time(run, MDL_CHECK_ACCESS, expired == all ? order->expires_at : 0);
    diagnosis_count(run, MDL_CHECK_ACCESS, "all", all);
    diagnosis_count(run, MDL_CHECK_ACCESS, "revoked", revoked);
    diagnosis_count(run, MDL_CHECK_ACCESS, "expired", expired);
}

/* Calls visit with each file of the open assignments, or of all assignments when none is open. */
static void files_each(run_t *run,
                       void (*visit)(run_t *run, const mdl_order_file_t *file, void *baton),
                       void *baton)
{
    int any = mdl_order_has_open(run->order, run->now);

    for (int i = 0; i < run->order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = diagnosis_assignment_at(run, i);

        for (int j = 0; j < assignment->files->nelts; j++) {
            if (!any || mdl_assignment_open(assignment, run->now)) {
                visit(run, APR_ARRAY_IDX(assignment->files, j, const mdl_order_file_t *), baton);
            }
        }
    }
}

typedef struct {
    int all;
    int faulty;
    int running;
    const mdl_order_file_t *last; /* the last faulty file */
    const char *finding, *fault;
    const mdl_storage_t *storage;
} tally_t;

static void diagnosis_add_tally(run_t *run, mdl_check_name_t name, const tally_t *tally)
{
    diagnosis_fact(run, name, "filename", tally->last->filename);
    diagnosis_count(run, name, "faulty", tally->faulty);
    diagnosis_count(run, name, "all", tally->all);
}

static void tally_allowance(run_t *run, const mdl_order_file_t *file, void *baton)
{
    mdl_entitlement_t entitlement = mdl_entitlement_of_file(MDL_ASSET_READY, file->downloads,
                                                            file->download_limit);
    tally_t *tally = baton;

    (void)run;
    tally->all++;
    if (entitlement == MDL_ENTITLEMENT_EXHAUSTED) {
        tally->faulty++;
        tally->last = file;
    } else if (entitlement == MDL_ENTITLEMENT_RUNNING && tally->running++ == 0 &&
               tally->faulty == 0) {
        tally->last = file;
    }
}

static void diagnosis_report_running(run_t *run, const tally_t *tally)
{
    diagnosis_report(run, MDL_CHECK_ALLOWANCE, MDL_CHECK_WARN, "allowance_running",
                     apr_psprintf(run->pool,
                                  "The last download of %s (file %" APR_INT64_T_FMT
                                  ") is running. If it breaks off, it can be tried again: at the "
                                  "latest once the connection has stood still for a minute or two.",
                                  tally->last->filename, tally->last->asset_id));
    diagnosis_fact(run, MDL_CHECK_ALLOWANCE, "filename", tally->last->filename);
}

static void diagnosis_check_allowance(run_t *run)
{
    tally_t tally = {0};

    files_each(run, tally_allowance, &tally);
    if (tally.faulty == 0 && tally.running > 0) {
        diagnosis_report_running(run, &tally);
        return;
    }
    if (tally.faulty == 0) {
        diagnosis_report(run, MDL_CHECK_ALLOWANCE, MDL_CHECK_OK, "allowance_left",
                         "There are downloads left of every file.");
        return;
    }
    diagnosis_report(
        run, MDL_CHECK_ALLOWANCE, diagnosis_share(tally.faulty, tally.all), "allowance_used_up",
        apr_psprintf(run->pool,
                     "The download limit of %s (file %" APR_INT64_T_FMT
                     "), %d, is used up, %d of %d file%s: grant more.",
                     tally.last->filename, tally.last->asset_id, tally.last->download_limit,
                     tally.faulty, tally.all, tally.all == 1 ? "" : "s"));
    diagnosis_add_tally(run, MDL_CHECK_ALLOWANCE, &tally);
    diagnosis_count(run, MDL_CHECK_ALLOWANCE, "limit", tally.last->download_limit);
}

/* Whether the storage has the file in its full size.  Objects are not asked for: there may be
   thousands. */
static int file_has_bytes(const tally_t *tally, const mdl_order_file_t *file, apr_pool_t *p)
{
    apr_int64_t size;

    if (file->is_object) {
        return !file->is_missing;
    }
    return mdl_storage_size(tally->storage, &(mdl_blob_t){.sha256 = file->sha256}, &size, p) ==
               APR_SUCCESS &&
           size == file->size;
}

static void tally_file(run_t *run, const mdl_order_file_t *file, void *baton)
{
    tally_t *tally = baton;
    const char *finding = NULL, *fault = NULL;

    tally->all++;
    if (file->status == MDL_ASSET_PENDING) {
        finding = "file_awaited";
        fault = "is still being imported";
    } else if (file->status == MDL_ASSET_FAILED) {
        finding = "file_failed";
        fault = "could not be imported";
    } else if (!file_has_bytes(tally, file, run->pool)) {
        finding = "file_missing";
        fault = "is missing in the server's storage";
    }
    if (fault != NULL) {
        tally->faulty++;
        tally->last = file;
        tally->finding = finding;
        tally->fault = fault;
    }
}

static void diagnosis_check_file(run_t *run)
{
    tally_t tally = {.storage = run->storage};

    if (run->storage == NULL) {
        diagnosis_report(run, MDL_CHECK_FILE, MDL_CHECK_FAIL, "file_storage",
                         "The server's storage can't be read.");
        return;
    }
    files_each(run, tally_file, &tally);
    if (tally.faulty == 0) {
        diagnosis_report(run, MDL_CHECK_FILE, MDL_CHECK_OK, "file_there", "Every file is there.");
        return;
    }
    diagnosis_report(run, MDL_CHECK_FILE, diagnosis_share(tally.faulty, tally.all), tally.finding,
                     apr_psprintf(run->pool, "%s (file %" APR_INT64_T_FMT ") %s: %d of %d file%s.",
                                  tally.last->filename, tally.last->asset_id, tally.fault,
                                  tally.faulty, tally.all, tally.all == 1 ? "" : "s"));
    diagnosis_add_tally(run, MDL_CHECK_FILE, &tally);
}

const mdl_diagnosis_t *mdl_diagnosis_make(const mdl_order_t *order, const mdl_storage_t *storage,
                                          apr_pool_t *p)
{
    static void (*const checks[])(run_t * run) = {
        diagnosis_check_recipient, diagnosis_check_email, diagnosis_check_page,
        diagnosis_check_mapping,   diagnosis_check_fraud, diagnosis_check_access,
        diagnosis_check_allowance, diagnosis_check_file};
    run_t run = {.order = order, .storage = storage, .now = apr_time_now(), .pool = p};

    run.diagnosis = apr_pcalloc(p, sizeof *run.diagnosis);
    run.diagnosis->first_failure = MDL_CHECKS;
    for (int i = 0; i < MDL_CHECKS; i++) {
        run.diagnosis->checks[i].facts = mdl_json_object(p);
        checks[i](&run);
    }
    for (int i = MDL_CHECKS - 1; i >= 0; i--) {
        if (run.diagnosis->checks[i].status == MDL_CHECK_FAIL) {
            run.diagnosis->first_failure = (mdl_check_name_t)i;
        }
    }
    return run.diagnosis;
}
