#include "base/text/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/text/text_buffer.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define EXACT           9007199254740991.0 /* beyond it, doubles skip integers */

static apr_status_t json_release(void *data)
{
    json_decref(data);
    return APR_SUCCESS;
}

/* Registers a new value with p.  json is NULL only if out of memory. */
static mdl_json_t *json_own(json_t *json, apr_pool_t *p)
{
    if (json == NULL) {
        abort();
    }
    apr_pool_cleanup_register(p, json, json_release, apr_pool_cleanup_null);
    return json;
}

/* The depth and values of a text.  jansson recurses for each level and allocates for each value
   without a limit, so both are counted before it parses. */
typedef struct {
    const char *too_deep; /* where nesting first exceeds the limit, or NULL */
    apr_size_t values;
} extent_t;

/* The end of the string that begins at at, or the end of the text. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : end;
}

static extent_t json_extent(const char *text, apr_size_t length)
{
    const char *end = text + length;
    extent_t extent = {.values = 1};
    int depth = 0;
    int opened = 0; /* the container that was opened last has no value yet */

    while (text < end) {
        const char *at = text;
        int opens = *at == '[' || *at == '{', closes = *at == ']' || *at == '}';

        text = *at == '"' ? string_end(at, end) : at + 1;
        if (strchr(" \t\n\r", *at) != NULL) {
            continue;
        }
        extent.values += *at == ',' || (opened && !closes);
        opened = opens;
        depth += opens - closes;
        if (depth > MDL_JSON_MAX_DEPTH && extent.too_deep == NULL) {
            extent.too_deep = at;
        }
    }
    return extent;
}

static const char *too_deep_sentence(const char *text, const char *at, apr_pool_t *p)
{
    int line = 1;
    int column = 1;

    for (; text < at; text++) {
        if (*text == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*text & 0xC0) != 0x80) {
            column++;
        }
    }
    return apr_psprintf(p, "Line %d, column %d: nested deeper than %d levels.", line, column,
                        MDL_JSON_MAX_DEPTH);
}

/* jansson quotes the text near an error; we repeat that only if it is printable ASCII. */
static int json_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7E) {
            return 0;
        }
    }
    return 1;
}

static const char *json_reason(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
        return "not valid UTF-8";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a NUL character is not allowed";
    case json_error_duplicate_key:
        return "a member stands twice in one object";
    case json_error_numeric_overflow:
        return "a number is out of range";
    case json_error_end_of_input_expected:
        return "something follows the end of the JSON text";
    case json_error_premature_end_of_input:
        return "the JSON text ends too early";
    default:
        return json_printable(error->text) ? error->text : "not valid JSON";
    }
}

apr_status_t mdl_json_parse(mdl_json_t **json, const char *text, apr_size_t length,
                            apr_size_t max_values, const char **why, apr_pool_t *p)
{
    extent_t extent;
    json_error_t error;
    json_t *root;

    *json = NULL;
    *why = NULL;
    if (length >= strlen(BYTE_ORDER_MARK) &&
        memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
        text += strlen(BYTE_ORDER_MARK);
        length -= strlen(BYTE_ORDER_MARK);
    }
    extent = json_extent(text, length);
    if (length == 0) {
        *why = "Line 1, column 1: the JSON text is empty.";
        return APR_EINVAL;
    }
    if (extent.too_deep != NULL) {
        *why = too_deep_sentence(text, extent.too_deep, p);
        return APR_EINVAL;
    }
    if (extent.values > max_values) {
        *why = apr_psprintf(p, "The JSON text has more than %" APR_SIZE_T_FMT " values.",
                            max_values);
        return APR_ENOSPC;
    }
    root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        *why = apr_psprintf(p, "Line %d, column %d: %s.", error.line < 1 ? 1 : error.line,
                            error.column < 1 ? 1 : error.column, json_reason(&error));
        return APR_EINVAL;
    }
    *json = json_own(root, p);
    return APR_SUCCESS;
}

mdl_json_t *mdl_json_stored(const char *text, apr_pool_t *p)
{
    mdl_json_t *json = NULL;
    const char *why;

    if (text != NULL) {
        mdl_json_parse(&json, text, strlen(text), MDL_JSON_MAX_VALUES, &why, p);
    }
    return json;
}

static int json_append(const char *text, size_t length, void *buffer)
{
    mdl_text_buffer_write(buffer, text, length);
    return 0;
}

static const char *json_dump(const mdl_json_t *json, size_t flags, apr_size_t *length,
                             apr_pool_t *p)
{
    mdl_text_buffer_t *text = mdl_text_buffer_make(p);

    if (json_dump_callback(json, json_append, text, flags | JSON_ENCODE_ANY) != 0) {
        abort();
    }
    return mdl_text_buffer_text(text, length);
}

typedef struct {
    mdl_json_put_fn *put;
    void *baton;
} sink_t;

static int json_sink(const char *text, size_t length, void *data)
{
    const sink_t *sink = data;

    sink->put(sink->baton, text, length);
    return 0;
}

void mdl_json_canonical(const mdl_json_t *json, mdl_json_put_fn *put, void *baton)
{
    sink_t sink = {put, baton};

    if (json_dump_callback(json, json_sink, &sink,
                           JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY) != 0) {
        abort();
    }
}

const char *mdl_json_text(const mdl_json_t *json, apr_size_t *length, apr_pool_t *p)
{
    return json_dump(json, JSON_COMPACT, length, p);
}

const char *mdl_json_pretty(const mdl_json_t *json, apr_pool_t *p)
{
    return json_dump(json, JSON_INDENT(2), NULL, p);
}

mdl_json_t *mdl_json_object(apr_pool_t *p)
{
    return json_own(json_object(), p);
}

mdl_json_t *mdl_json_array(apr_pool_t *p)
{
    return json_own(json_array(), p);
}

/* Adds value to its parent; frees it and returns NULL if the parent can't hold it. */
static mdl_json_t *json_add(mdl_json_t *to, const char *name, json_t *value)
{
    int rc;

    if (value == NULL) {
        abort();
    }
    rc = name != NULL ? json_object_set_new(to, name, value) : json_array_append_new(to, value);
    return rc == 0 ? value : NULL;
}

mdl_json_t *mdl_json_add_object(mdl_json_t *to, const char *name)
{
    return json_add(to, name, json_object());
}

mdl_json_t *mdl_json_add_array(mdl_json_t *to, const char *name)
{
    return json_add(to, name, json_array());
}

void mdl_json_add_string(mdl_json_t *to, const char *name, const char *value)
{
    json_t *string = value != NULL ? json_string(value) : NULL;

    json_add(to, name, string != NULL ? string : json_null());
}

const char *mdl_json_texts(const apr_array_header_t *texts, apr_pool_t *p)
{
    mdl_json_t *array = mdl_json_array(p);

    for (int i = 0; i < texts->nelts; i++) {
        mdl_json_add_string(array, NULL, APR_ARRAY_IDX(texts, i, const char *));
    }
    return mdl_json_text(array, NULL, p);
}

void mdl_json_add_int(mdl_json_t *to, const char *name, apr_int64_t value)
{
    json_add(to, name, json_integer(value));
}

void mdl_json_add_int_if(mdl_json_t *to, const char *name, apr_int64_t value, int there)
{
    json_add(to, name, there ? json_integer(value) : json_null());
}

void mdl_json_add_bool(mdl_json_t *to, const char *name, int value)
{
    json_add(to, name, json_boolean(value));
}

void mdl_json_add_null(mdl_json_t *to, const char *name)
{
    json_add(to, name, json_null());
}

void mdl_json_add_time(mdl_json_t *to, const char *name, apr_time_t value)
{
    char text[MDL_CLOCK_RFC3339_LENGTH + 1];

    if (value == 0) {
        mdl_json_add_null(to, name);
        return;
    }
    mdl_clock_rfc3339_to(text, value);
    mdl_json_add_string(to, name, text);
}

void mdl_json_add_copy(mdl_json_t *to, const char *name, const mdl_json_t *value)
{
    json_add(to, name, value != NULL ? json_deep_copy(value) : json_null());
}

/* A number without a fraction is an integer however it is written, as 1.0 or 1e3 (JSON Schema Core,
   section 4.2.3). */
static int json_is_whole(const mdl_json_t *json)
{
    double value = json_real_value(json);

    return fabs(value) <= EXACT && value == trunc(value);
}

mdl_json_type_t mdl_json_type(const mdl_json_t *json)
{
    if (json == NULL) {
        return MDL_JSON_ABSENT;
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return MDL_JSON_OBJECT;
    case JSON_ARRAY:
        return MDL_JSON_ARRAY;
    case JSON_STRING:
        return MDL_JSON_STRING;
    case JSON_INTEGER:
        return MDL_JSON_INT;
    case JSON_REAL:
        return json_is_whole(json) ? MDL_JSON_INT : MDL_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return MDL_JSON_BOOL;
    case JSON_NULL:
        return MDL_JSON_NULL;
    }
    return MDL_JSON_ABSENT;
}

int mdl_json_is_empty(const mdl_json_t *object)
{
    return json_object_size(object) == 0;
}

mdl_json_t *mdl_json_member(const mdl_json_t *object, const char *name)
{
    return json_object_get(object, name);
}

apr_size_t mdl_json_length(const mdl_json_t *array)
{
    return json_array_size(array);
}

mdl_json_t *mdl_json_element(const mdl_json_t *array, apr_size_t index)
{
    return json_array_get(array, index);
}

void mdl_json_each(const mdl_json_t *object,
                   void (*visit)(void *baton, const char *name, mdl_json_t *value), void *baton)
{
    json_t *json = (json_t *)object;

    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        visit(baton, json_object_iter_key(at), json_object_iter_value(at));
    }
}

const char *mdl_json_string(const mdl_json_t *json)
{
    return json_string_value(json);
}

apr_int64_t mdl_json_int(const mdl_json_t *json)
{
    if (json_is_real(json)) {
        return json_is_whole(json) ? (apr_int64_t)json_real_value(json) : 0;
    }
    return json_integer_value(json);
}

int mdl_json_bool(const mdl_json_t *json)
{
    return json_is_true(json);
}

double mdl_json_number(const mdl_json_t *json)
{
    return json_number_value(json);
}
