#include "api/list.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

#include "api/resource.h"
#include "base/clock.h"
#include "base/text/utf8.h"
#include "core/identifier.h"

#define DEFAULT_LIMIT 25
#define MAX_LIMIT     100
#define MAC_LENGTH    16
#define MAX_POSITION  64
#define MAX_DIGITS    20 /* of a storefront's id */
#define WORD          "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

typedef struct {
    const char *name; /* NULL once it was read */
    const char *value;
} parameter_t;

struct mdl_list_t {
    mdl_request_t *request;
    apr_pool_t *pool;
    apr_array_header_t *given; /* parameter_t, of the query */
    const char *filters;       /* name=value lines, to which a cursor is bound */
    const char *link;          /* the same parameters as a query, each followed by "&" */
    int limit;
    int summary;
    const char *after; /* position; NULL: from the newest */
};

void mdl_list_fault(mdl_list_t *list, const char *name, const char *code, const char *message)
{
    mdl_problem_add_detail(&list->request->problem, apr_pstrcat(list->pool, "/", name, NULL), code,
                           message, list->pool);
}

/* A name from the query if it can stand in a pointer, else "". */
static const char *list_shown(const char *name)
{
    return strspn(name, WORD) == strlen(name) ? name : "";
}

static parameter_t *list_find(const mdl_list_t *list, const char *name)
{
    for (int i = 0; i < list->given->nelts; i++) {
        parameter_t *parameter = &APR_ARRAY_IDX(list->given, i, parameter_t);

        if (parameter->name != NULL && strcmp(parameter->name, name) == 0) {
            return parameter;
        }
    }
    return NULL;
}

static void list_read_parameter(mdl_list_t *list, char *pair)
{
    char *value = strchr(pair, '=');

    if (value != NULL) {
        *value++ = '\0';
    }
    if (*pair == '\0' || value == NULL || ap_unescape_urlencoded(pair) != OK ||
        ap_unescape_urlencoded(value) != OK) {
        mdl_list_fault(list, "", "invalid", "The query must be of the form name=value&name=value.");
    } else if (list_find(list, pair) != NULL) {
        mdl_list_fault(list, list_shown(pair), "duplicate",
                       "This parameter stands in the query twice.");
    } else {
        APR_ARRAY_PUSH(list->given, parameter_t) = (parameter_t){pair, value};
    }
}

/* Reads a parameter, once; NULL when it is absent. */
static const char *list_ask(mdl_list_t *list, const char *name)
{
    parameter_t *parameter = list_find(list, name);

    if (parameter == NULL) {
        return NULL;
    }
    parameter->name = NULL;
    return parameter->value;
}

static mdl_list_t *list_read_query(mdl_request_t *request)
{
    mdl_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    char *query = apr_pstrdup(request->r->pool, request->r->args != NULL ? request->r->args : "");
    char *rest = NULL;

    request->list = list;
    list->request = request;
    list->pool = request->r->pool;
    list->given = apr_array_make(list->pool, 4, sizeof(parameter_t));
    list->filters = "";
    list->limit = DEFAULT_LIMIT;
    for (char *pair = apr_strtok(query, "&", &rest); pair != NULL;
         pair = apr_strtok(NULL, "&", &rest)) {
        list_read_parameter(list, pair);
    }
    return list;
}

/* Refuses a query with a fault or with a parameter that was not read. */
static apr_status_t list_refuse_faults(mdl_list_t *list)
{
    for (int i = 0; i < list->given->nelts; i++) {
        const char *name = APR_ARRAY_IDX(list->given, i, parameter_t).name;

        if (name != NULL) {
            mdl_list_fault(list, list_shown(name), "unknown_parameter",
                           "There is no such parameter.");
        }
    }
    return list->request->problem.details != NULL
               ? mdl_problem_set(&list->request->problem, 400, "invalid_request",
                                 "The query has faulty parameters; see details.")
               : APR_SUCCESS;
}

apr_status_t mdl_list_none(mdl_request_t *request)
{
    return list_refuse_faults(list_read_query(request));
}

mdl_list_t *mdl_list_begin(mdl_request_t *request)
{
    mdl_list_t *list = list_read_query(request);
    const char *limit = list_ask(list, "limit");

    list->link = "";
    if (limit != NULL) {
        list->limit = (int)mdl_identifier_parse(limit);
        list->link = apr_psprintf(list->pool, "limit=%d&", list->limit);
        if (list->limit < 1 || list->limit > MAX_LIMIT || strlen(limit) > 3) {
            mdl_list_fault(list, "limit", "out_of_range", "limit must be from 1 to 100.");
        }
    }
    return list;
}

static void list_remember(mdl_list_t *list, const char *name, const char *value)
{
    list->filters = apr_pstrcat(list->pool, list->filters, name, "=", value, "\n", NULL);
    list->link = apr_pstrcat(list->pool, list->link, name, "=",
                             ap_escape_urlencoded(list->pool, value), "&", NULL);
}

const char *mdl_list_text(mdl_list_t *list, const char *name, apr_size_t max)
{
    const char *value = list_ask(list, name);

    if (value == NULL) {
        return NULL;
    }
    value = mdl_utf8_trimmed(value, list->pool);
    if (!mdl_utf8_valid(value) || !mdl_utf8_is_text(value, max)) {
        mdl_list_fault(list, name, "invalid",
                       "This parameter has no value that can be looked for.");
        return NULL;
    }
    list_remember(list, name, value);
    return value;
}

const char *mdl_list_choice(mdl_list_t *list, const char *name, const char *const *choices)
{
    const char *value = list_ask(list, name);
    const char *names = "";

    if (value == NULL) {
        return NULL;
    }
    for (const char *const *choice = choices; *choice != NULL; choice++) {
        if (strcmp(value, *choice) == 0) {
            list_remember(list, name, *choice);
            return *choice;
        }
        names = apr_pstrcat(list->pool, names, *names != '\0' ? ", " : "", *choice, NULL);
    }
    mdl_list_fault(list, name, "invalid",
                   apr_pstrcat(list->pool, "This parameter must be one of: ", names, ".", NULL));
    return NULL;
}

apr_int64_t mdl_list_id(mdl_list_t *list, const char *name)
{
    const char *value = list_ask(list, name);
    apr_int64_t id = value != NULL ? mdl_identifier_parse(value) : 0;

    if (value != NULL && id == 0) {
        mdl_list_fault(list, name, "invalid", "This parameter must be an id, an integer.");
    } else if (value != NULL) {
        list_remember(list, name, value);
    }
    return id;
}

const char *mdl_list_storefront_id(mdl_list_t *list, const char *name)
{
    const char *id = mdl_list_text(list, name, MAX_DIGITS);

    if (id != NULL && !mdl_identifier_is_digits(id)) {
        mdl_list_fault(list, name, "invalid",
                       "This parameter must be the storefront's id, decimal digits.");
    }
    return id;
}

apr_time_t mdl_list_time(mdl_list_t *list, const char *name)
{
    const char *value = list_ask(list, name);
    apr_time_t time = 0;

    if (value != NULL && mdl_clock_parse(&time, value) != APR_SUCCESS) {
        mdl_list_fault(list, name, "invalid",
                       "This parameter must be a time such as 2026-01-31T12:00:00Z.");
    } else if (value != NULL) {
        list_remember(list, name, value);
    }
    return time;
}

void mdl_list_view(mdl_list_t *list)
{
    static const char *const views[] = {"summary", NULL};

    list->summary = mdl_list_choice(list, "view", views) != NULL;
}

#define CURSOR_PURPOSE "cursor"

/* The text that a cursor signs: shop, list, filters and position. */
static const char *list_signed(const mdl_list_t *list, const char *position)
{
    return apr_psprintf(list->pool, "%" APR_INT64_T_FMT "\n%s\n%s%s", list->request->caller.shop_id,
                        list->request->path, list->filters, position);
}

static const char *list_cursor(const mdl_list_t *list, const char *position)
{
    unsigned char bytes[MDL_SHA256_LENGTH + MAX_POSITION];
    const char *text = list_signed(list, position);
    apr_size_t length = strlen(position);

    mdl_secret_mac(list->request->service->secret, CURSOR_PURPOSE, text, strlen(text), bytes);
    memcpy(bytes + MAC_LENGTH, position, length);
    return mdl_base64url(bytes, MAC_LENGTH + length, list->pool);
}

/* The position that a cursor names; NULL unless the cursor was made here for this list. */
static const char *list_read_cursor(const mdl_list_t *list, const char *cursor)
{
    unsigned char bytes[MAC_LENGTH + MAX_POSITION + 1];
    const char *position = (const char *)bytes + MAC_LENGTH;
    const char *text;
    apr_size_t length = strlen(cursor) * 3 / 4;

    if (length <= MAC_LENGTH || length > MAC_LENGTH + MAX_POSITION ||
        mdl_base64url_decode(bytes, length, cursor) != APR_SUCCESS) {
        return NULL;
    }
    bytes[length] = '\0';
    /* With other characters a position could pass for filters and a position. */
    if (strspn(position, WORD) != length - MAC_LENGTH) {
        return NULL;
    }
    text = list_signed(list, position);
    return mdl_secret_verify(list->request->service->secret, CURSOR_PURPOSE, text, strlen(text),
                             bytes, MAC_LENGTH)
               ? apr_pstrdup(list->pool, position)
               : NULL;
}

apr_status_t mdl_list_refuse_cursor(mdl_list_t *list)
{
    return mdl_problem_set(&list->request->problem, 400, "invalid_cursor",
                           "This cursor does not belong to this list; begin without one.");
}

apr_status_t mdl_list_end(mdl_list_t *list, mdl_list_page_t *page)
{
    const char *cursor = list_ask(list, "cursor");
    apr_status_t rv = list_refuse_faults(list);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (cursor != NULL && (list->after = list_read_cursor(list, cursor)) == NULL) {
        return mdl_list_refuse_cursor(list);
    }
    page->shop_id = list->request->caller.shop_id;
    page->before = list->after != NULL ? apr_atoi64(list->after) : APR_INT64_MAX;
    page->before_text = list->after != NULL ? list->after : MDL_LIST_NEWEST;
    page->after = list->after;
    page->limit = list->limit + 1;
    page->summary = list->summary;
    return APR_SUCCESS;
}

apr_status_t mdl_list_end_plain(mdl_list_t *list, int *limit)
{
    *limit = list->limit;
    return list_refuse_faults(list);
}

apr_status_t mdl_list_parse(mdl_request_t *request)
{
    request->arg = apr_pcalloc(request->r->pool, sizeof(mdl_list_page_t));
    return mdl_list_end(mdl_list_begin(request), request->arg);
}

void mdl_list_write(mdl_request_t *request)
{
    const mdl_list_t *list = request->list;
    const mdl_list_page_t *page = request->arg;
    const apr_array_header_t *rows = page->found;
    mdl_json_t *data = mdl_json_add_array(request->response, "data");
    int more = page->more || rows->nelts > list->limit;
    int shown = rows->nelts > list->limit ? list->limit : rows->nelts;
    const char *last = NULL, *cursor;

    for (int i = 0; i < shown; i++) {
        last = request->route->write_entity(mdl_json_add_object(data, NULL), request,
                                            APR_ARRAY_IDX(rows, i, const void *));
    }
    cursor = more ? list_cursor(list, page->next != NULL ? page->next : last) : NULL;
    mdl_json_add_bool(request->response, "has_more", more);
    mdl_json_add_string(request->response, "next_cursor", cursor);
    if (more) {
        apr_table_setn(request->r->headers_out, "Link",
                       apr_pstrcat(list->pool, "<", request->root, request->path, "?", list->link,
                                   "cursor=", cursor, ">; rel=\"next\"", NULL));
    }
}
