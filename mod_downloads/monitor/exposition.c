#include "monitor/exposition.h"

#include <apr_strings.h>

#include "base/version.h"
#include "core/metrics.h"
#include "monitor/operations.h"

#define LINE 1024

static const char *const classes[MDL_CLASSES] = {"2xx", "3xx", "4xx", "5xx"};

typedef struct {
    mdl_text_buffer_t *to;
    mdl_exposition_t format;
} page_t;

/* OpenMetrics names a counter's family without its "_total". */
static void page_begin(const page_t *page, const char *name, const char *type, const char *help)
{
    const char *ending = page->format == MDL_PROMETHEUS_TEXT && *type == 'c' ? "_total" : "";
    char line[LINE];

    if (page->format >= MDL_STATUS_TEXT) {
        return;
    }
    apr_snprintf(line, sizeof line,
                 "# HELP downloads_%s%s %s\n"
                 "# TYPE downloads_%s%s %s\n",
                 name, ending, help, name, ending, type);
    mdl_text_buffer_put(page->to, line);
}

/* What stands before, between and behind the name and the value of a sample. */
static const char *const marks[][3] = {
    [MDL_PROMETHEUS_TEXT] = {"", " ", "\n"},
    [MDL_OPENMETRICS] = {"", " ", "\n"},
    [MDL_STATUS_TEXT] = {"", ": ", "\n"},
    [MDL_STATUS_HTML] = {"<tr><td>", "</td><td>", "</td></tr>\n"}};

/* labels is empty or has braces. */
static void page_sample(const page_t *page, const char *name, const char *ending,
                        const char *labels, long long value, int is_time)
{
    const char *const *mark = marks[page->format];
    char line[LINE], text[32];

    if (page->format == MDL_STATUS_HTML && value == 0) {
        return;
    }
    if (is_time) {
        apr_snprintf(text, sizeof text, "%.6f", (double)value / APR_USEC_PER_SEC);
    } else {
        apr_snprintf(text, sizeof text, "%" APR_INT64_T_FMT, (apr_int64_t)value);
    }
    apr_snprintf(line, sizeof line, "%sdownloads_%s%s%s%s%s%s", mark[0], name, ending, labels,
                 mark[1], text, mark[2]);
    mdl_text_buffer_put(page->to, line);
}

/* --- the families of the table --- */

/* The value of a label; "" for a label that the family does not have. */
static const char *family_label(const mdl_metric_family_t *family, int label, int i)
{
    return family->labels[label].name != NULL ? family->labels[label].values[i] : "";
}

static const char *family_labels(const mdl_metric_family_t *family, const char *first,
                                 const char *second, char *to, apr_size_t size)
{
    if (family->labels[0].name == NULL) {
        return "";
    }
    if (family->labels[1].name == NULL) {
        apr_snprintf(to, size, "{%s=\"%s\"}", family->labels[0].name, first);
    } else {
        apr_snprintf(to, size, "{%s=\"%s\",%s=\"%s\"}", family->labels[0].name, first,
                     family->labels[1].name, second);
    }
    return to;
}

static int family_count(const mdl_metric_family_t *family, int label)
{
    return family->labels[label].name != NULL ? family->labels[label].count : 1;
}

static void page_family(const page_t *page, const mdl_metric_family_t *family)
{
    const mdl_metric_t *metric = (const mdl_metric_t *)((const char *)mdl_metrics + family->offset);
    const char *ending = family->type == MDL_COUNTER ? "_total" : "";
    char labels[LINE / 2];

    page_begin(page, family->name, family->type == MDL_COUNTER ? "counter" : "gauge", family->help);
    for (int i = 0; i < family_count(family, 0); i++) {
        const char *first = family_label(family, 0, i);

        for (int j = 0; j < family_count(family, 1); j++, metric++) {
            long long value = mdl_metric_get(metric);

            if (first != NULL && (family->type == MDL_COUNTER || value != MDL_METRIC_ABSENT)) {
                page_sample(
                    page, family->name, ending,
                    family_labels(family, first, family_label(family, 1, j), labels, sizeof labels),
                    value, family->is_time);
            }
        }
    }
}

/* --- requests --- */

/* labels has no braces; empty for none. */
static void page_histogram(const page_t *page, const char *name, const char *labels,
                           const mdl_histogram_t *histogram)
{
    const char *comma = *labels ? "," : "";
    long long count = 0;
    char all[LINE / 2];

    for (int i = 0; i < MDL_BUCKETS; i++) {
        count += mdl_metric_get(&histogram->buckets[i]);
        apr_snprintf(all, sizeof all, "{%s%sle=\"%s\"}", labels, comma, mdl_bucket_names[i]);
        page_sample(page, name, "_bucket", all, count, 0);
    }
    apr_snprintf(all, sizeof all, *labels ? "{%s}" : "%s", labels);
    page_sample(page, name, "_sum", all, mdl_metric_get(&histogram->time), 1);
    page_sample(page, name, "_count", all, count, 0);
}

static const char *operation_labels(int number, char *to, apr_size_t size)
{
    apr_snprintf(to, size, "handler=\"%s\",operation=\"%s\"", mdl_operation_handler(number),
                 mdl_operation_name(number));
    return to;
}

static int operation_is_used(const mdl_operation_count_t *count)
{
    long long requests = 0;

    for (int i = 0; i < MDL_CLASSES; i++) {
        requests += mdl_metric_get(&count->classes[i]);
    }
    return requests > 0;
}

static void page_requests(const page_t *page)
{
    char labels[LINE / 2], all[LINE];

    page_begin(page, "requests", "counter", "Requests by operation and class of status.");
    for (int i = 0; i < mdl_operations_count(); i++) {
        const mdl_operation_count_t *count = &mdl_metrics->operations[i];

        for (int j = 0; operation_is_used(count) && j < MDL_CLASSES; j++) {
            apr_snprintf(all, sizeof all, "{%s,class=\"%s\"}",
                         operation_labels(i, labels, sizeof labels), classes[j]);
            page_sample(page, "requests", "_total", all, mdl_metric_get(&count->classes[j]), 0);
        }
    }
    page_begin(page, "request_seconds", "histogram",
               "How long the module worked on requests, bodies that it waited for included.");
    for (int i = 0; i < mdl_operations_count(); i++) {
        if (operation_is_used(&mdl_metrics->operations[i])) {
            page_histogram(page, "request_seconds", operation_labels(i, labels, sizeof labels),
                           &mdl_metrics->operations[i].took);
        }
    }
}

void mdl_exposition_write(mdl_text_buffer_t *to, mdl_exposition_t format)
{
    const page_t page = {to, format};
    char labels[LINE / 2];

    page_begin(&page, "build_info", "gauge", "The build of this node.");
    apr_snprintf(labels, sizeof labels, "{version=\"%s\"}", mdl_build_name());
    page_sample(&page, "build_info", "", labels, 1, 0);
    page_requests(&page);
    page_begin(&page, "database_wait_seconds", "histogram",
               "How long requests waited for a connection, if all of their process were in use.");
    page_histogram(&page, "database_wait_seconds", "", &mdl_metrics->database_wait);
    for (const mdl_metric_family_t *family = mdl_metric_families; family->name != NULL; family++) {
        page_family(&page, family);
    }
    if (format == MDL_OPENMETRICS) {
        mdl_text_buffer_put(to, "# EOF\n");
    }
}

void mdl_exposition_write_status(mdl_text_buffer_t *to, mdl_exposition_t format)
{
    const page_t page = {to, format};
    char labels[32];

    for (int j = 0; j < MDL_CLASSES; j++) {
        long long requests = 0;

        for (int i = 0; i < mdl_operations_count(); i++) {
            requests += mdl_metric_get(&mdl_metrics->operations[i].classes[j]);
        }
        apr_snprintf(labels, sizeof labels, "{class=\"%s\"}", classes[j]);
        page_sample(&page, "requests", "_total", labels, requests, 0);
    }
    for (const mdl_metric_family_t *family = mdl_metric_families; family->name != NULL; family++) {
        page_family(&page, family);
    }
}
