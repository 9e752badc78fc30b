#include "api/members.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/mail/mime.h"
#include "base/names.h"
#include "base/text/utf8.h"
#include "core/identifier.h"

#define MAX_LIST  250
#define MAX_NAME  200 /* bytes of a name that a response repeats */
#define MAX_NAMES 100 /* values of an enum in a list */

struct mdl_members_t {
    mdl_request_t *request;
    apr_pool_t *pool;
    const mdl_json_t *object;
    const char *pointer;
    apr_hash_t *asked;
};

/* Escapes a name for a JSON pointer (RFC 6901 section 3); a name that is too long is cut
   after a whole character. */
static const char *member_escape(const char *name, apr_pool_t *p)
{
    char *out = apr_palloc(p, 2 * MAX_NAME + 1);
    char *to = out;
    const char *end = name + strnlen(name, MAX_NAME);

    while (*end != '\0' && (*end & 0xc0) == 0x80) {
        end--;
    }
    for (; name < end; name++) {
        if (*name == '~' || *name == '/') {
            *to++ = '~';
            *to++ = *name == '~' ? '0' : '1';
        } else {
            *to++ = *name;
        }
    }
    *to = '\0';
    return out;
}

mdl_members_t *mdl_members_begin(mdl_request_t *request, const mdl_json_t *object,
                                 const char *pointer)
{
    mdl_members_t *members = apr_pcalloc(request->r->pool, sizeof *members);

    members->request = request;
    members->pool = request->r->pool;
    members->object = object;
    members->pointer = pointer;
    members->asked = apr_hash_make(members->pool);
    return members;
}

void mdl_members_fault(mdl_members_t *members, const char *name, const char *code,
                       const char *message)
{
    if (!mdl_problem_is_full(&members->request->problem)) {
        mdl_problem_add_detail(&members->request->problem,
                               apr_pstrcat(members->pool, members->pointer, "/",
                                           member_escape(name, members->pool), NULL),
                               code, message, members->pool);
    }
}

static void member_fault_at(mdl_members_t *members, const char *name, apr_size_t index,
                            const char *code, const char *message)
{
    if (!mdl_problem_is_full(&members->request->problem)) {
        mdl_problem_add_detail(&members->request->problem,
                               apr_psprintf(members->pool, "%s/%s/%" APR_SIZE_T_FMT,
                                            members->pointer, member_escape(name, members->pool),
                                            index),
                               code, message, members->pool);
    }
}

static void member_check_asked(void *baton, const char *name, mdl_json_t *value)
{
    mdl_members_t *members = baton;

    (void)value;
    if (apr_hash_get(members->asked, name, APR_HASH_KEY_STRING) == NULL) {
        mdl_members_fault(members, name, "unknown_member", "There is no such member.");
    }
}

apr_status_t mdl_members_end(mdl_members_t *members)
{
    mdl_json_each(members->object, member_check_asked, members);
    if (*members->pointer != '\0' || members->request->problem.details == NULL) {
        return APR_SUCCESS;
    }
    return mdl_problem_set(&members->request->problem, 400, "invalid_request",
                           "The request has faulty members; see details.");
}

/* The member, or NULL when it is absent or null; notes a fault if presence forbids that. */
static const mdl_json_t *member_ask(mdl_members_t *members, const char *name,
                                    mdl_presence_t presence)
{
    const mdl_json_t *value = mdl_json_member(members->object, name);

    apr_hash_set(members->asked, name, APR_HASH_KEY_STRING, name);
    if (mdl_json_type(value) != MDL_JSON_ABSENT && mdl_json_type(value) != MDL_JSON_NULL) {
        return value;
    }
    if (presence == MDL_REQUIRED) {
        mdl_members_fault(members, name, "required", "This member is required.");
    } else if (presence == MDL_OPTIONAL && value != NULL) {
        mdl_members_fault(members, name, "wrong_type",
                          "This member must not be null; it may be left out.");
    }
    return NULL;
}

int mdl_members_given(const mdl_members_t *members, const char *name)
{
    return mdl_json_member(members->object, name) != NULL;
}

static const char *member_ask_string(mdl_members_t *members, const char *name,
                                     mdl_presence_t presence)
{
    const mdl_json_t *value = member_ask(members, name, presence);

    if (value != NULL && mdl_json_type(value) != MDL_JSON_STRING) {
        mdl_members_fault(members, name, "wrong_type", "This member must be a string.");
        return NULL;
    }
    return value != NULL ? mdl_json_string(value) : NULL;
}

static const char *member_ask_text(mdl_members_t *members, const char *name,
                                   mdl_presence_t presence)
{
    const char *text = member_ask_string(members, name, presence);

    return text != NULL && presence == MDL_NULLABLE &&
                   *mdl_utf8_trimmed(text, members->pool) == '\0'
               ? NULL
               : text;
}

const char *mdl_members_text(mdl_members_t *members, const char *name, mdl_presence_t presence,
                             apr_size_t max)
{
    const char *text = member_ask_text(members, name, presence);

    if (text == NULL) {
        return NULL;
    }
    text = mdl_utf8_trimmed(text, members->pool);
    if (*text == '\0' || mdl_utf8_length(text) > max) {
        mdl_members_fault(members, name, "wrong_length",
                          apr_psprintf(members->pool,
                                       "This member must have 1 to %" APR_SIZE_T_FMT " characters.",
                                       max));
        return NULL;
    }
    if (!mdl_utf8_is_text(text, max)) {
        mdl_members_fault(members, name, "invalid",
                          "This member must not have control characters.");
        return NULL;
    }
    return text;
}

const char *mdl_members_lines(mdl_members_t *members, const char *name, apr_size_t max)
{
    const char *text = member_ask_text(members, name, MDL_NULLABLE);

    if (text == NULL) {
        return NULL;
    }
    text = mdl_utf8_lines(text, members->pool);
    if (mdl_utf8_length(text) > max) {
        mdl_members_fault(members, name, "wrong_length",
                          apr_psprintf(members->pool,
                                       "This member must have 1 to %" APR_SIZE_T_FMT " characters.",
                                       max));
        return NULL;
    }
    if (!mdl_utf8_is_lines(text, max)) {
        mdl_members_fault(members, name, "invalid",
                          "This member must not have control characters but tabs and line ends.");
        return NULL;
    }
    return text;
}

const char *mdl_members_email(mdl_members_t *members, const char *name, const char *email)
{
    const char *address = mdl_mime_address_of(email, members->pool);

    if (email != NULL && address == NULL) {
        mdl_members_fault(members, name, "invalid", "This member must be an email address.");
    }
    return address;
}

/* "This member must be one of: a, b." */
static const char *member_choices(const char *what, const char *const *names, apr_pool_t *p)
{
    const char *text = apr_pstrcat(p, what, " must be one of: ", *names, NULL);

    while (*++names != NULL) {
        text = apr_pstrcat(p, text, ", ", *names, NULL);
    }
    return apr_pstrcat(p, text, ".", NULL);
}

unsigned mdl_members_choice(mdl_members_t *members, const char *name, const char *const *names,
                            unsigned fallback)
{
    const char *text = member_ask_string(members, name, MDL_OPTIONAL);
    int value = mdl_names_find(names, text);

    if (text == NULL || value >= 0) {
        return text == NULL ? fallback : (unsigned)value;
    }
    mdl_members_fault(members, name, "invalid",
                      member_choices("This member", names, members->pool));
    return fallback;
}

int mdl_members_bool(mdl_members_t *members, const char *name, int fallback)
{
    const mdl_json_t *value = member_ask(members, name, MDL_OPTIONAL);

    if (value == NULL) {
        return fallback;
    }
    if (mdl_json_type(value) != MDL_JSON_BOOL) {
        mdl_members_fault(members, name, "wrong_type", "This member must be true or false.");
        return fallback;
    }
    return mdl_json_bool(value);
}

apr_int64_t mdl_members_int(mdl_members_t *members, const char *name, mdl_presence_t presence,
                            apr_int64_t min, apr_int64_t max, apr_int64_t fallback)
{
    const mdl_json_t *value = member_ask(members, name, presence);

    if (value == NULL) {
        return fallback;
    }
    if (mdl_json_type(value) != MDL_JSON_INT) {
        mdl_members_fault(members, name, "wrong_type", "This member must be an integer.");
        return fallback;
    }
    if (mdl_json_int(value) < min || mdl_json_int(value) > max) {
        mdl_members_fault(members, name, "out_of_range",
                          apr_psprintf(members->pool,
                                       "This member must be from %" APR_INT64_T_FMT
                                       " to %" APR_INT64_T_FMT ".",
                                       min, max));
        return fallback;
    }
    return mdl_json_int(value);
}

apr_status_t mdl_members_none(mdl_request_t *request)
{
    return mdl_members_end(mdl_members_begin(request, request->body, ""));
}

const char *mdl_members_digits(mdl_members_t *members, const char *name, mdl_presence_t presence)
{
    const char *text = member_ask_string(members, name, presence);

    if (text != NULL && !mdl_identifier_is_digits(text)) {
        mdl_members_fault(members, name, "invalid",
                          "This member must be a string of 1 to 20 decimal digits.");
        return NULL;
    }
    return text;
}

const char *mdl_members_product(mdl_members_t *members, const char *name)
{
    const char *text = member_ask_string(members, name, MDL_REQUIRED);

    if (text != NULL && !mdl_identifier_is_product(text)) {
        mdl_members_fault(members, name, "invalid",
                          "This member must be like gid://platform/Product/123.");
        return NULL;
    }
    return text;
}

#define VARIANT_FORM                                                                               \
    "This member must be like gid://platform/ProductVariant/123, of the product's platform, or "   \
    "its number as a string."

const char *mdl_members_variant(mdl_members_t *members, const char *name, const char *product)
{
    const char *text = member_ask_text(members, name, MDL_NULLABLE);
    const char *variant = text != NULL ? mdl_identifier_variant(text, product, members->pool)
                                       : NULL;

    if (text != NULL && variant == NULL) {
        mdl_members_fault(members, name, "invalid", VARIANT_FORM);
    }
    return variant;
}

static const mdl_json_t *ask_array(mdl_members_t *members, const char *name,
                                   mdl_presence_t presence, apr_size_t max)
{
    const mdl_json_t *array = member_ask(members, name, presence);

    if (array == NULL) {
        return NULL;
    }
    if (mdl_json_type(array) != MDL_JSON_ARRAY) {
        mdl_members_fault(members, name, "wrong_type", "This member must be an array.");
        return NULL;
    }
    if (mdl_json_length(array) > max) {
        mdl_members_fault(
            members, name, "wrong_length",
            apr_psprintf(members->pool,
                         "This member must have at most %" APR_SIZE_T_FMT " elements.", max));
        return NULL;
    }
    return array;
}

apr_array_header_t *mdl_members_variants(mdl_members_t *members, const char *name,
                                         const char *product)
{
    const mdl_json_t *array = ask_array(members, name, MDL_OPTIONAL, MAX_LIST);
    apr_array_header_t *variants = apr_array_make(members->pool, 4, sizeof(const char *));
    apr_hash_t *seen = apr_hash_make(members->pool);

    for (apr_size_t i = 0; i < mdl_json_length(array); i++) {
        const char *text = mdl_json_string(mdl_json_element(array, i));
        const char *variant = text != NULL ? mdl_identifier_variant(text, product, members->pool)
                                           : NULL;

        if (variant == NULL) {
            member_fault_at(members, name, i, "invalid", VARIANT_FORM);
        } else if (apr_hash_get(seen, variant, APR_HASH_KEY_STRING) != NULL) {
            member_fault_at(members, name, i, "duplicate",
                            "This element stands in the list already.");
        } else {
            apr_hash_set(seen, variant, APR_HASH_KEY_STRING, variant);
            APR_ARRAY_PUSH(variants, const char *) = variant;
        }
    }
    return variants;
}

static apr_array_header_t *member_ids_of(mdl_members_t *members, const char *name,
                                         const mdl_json_t *array)
{
    apr_array_header_t *ids = apr_array_make(members->pool, 4, sizeof(apr_int64_t));

    for (apr_size_t i = 0; i < mdl_json_length(array); i++) {
        const mdl_json_t *element = mdl_json_element(array, i);
        apr_int64_t id = mdl_json_int(element);
        int duplicate = 0;

        if (mdl_json_type(element) != MDL_JSON_INT || id < 1 || id > MDL_IDENTIFIER_MAX) {
            member_fault_at(members, name, i, "wrong_type",
                            "This element must be an id, an integer.");
            continue;
        }
        for (int j = 0; j < ids->nelts && !duplicate; j++) {
            duplicate = APR_ARRAY_IDX(ids, j, apr_int64_t) == id;
        }
        if (duplicate) {
            member_fault_at(members, name, i, "duplicate",
                            "This element stands in the list already.");
        } else {
            APR_ARRAY_PUSH(ids, apr_int64_t) = id;
        }
    }
    return ids;
}

apr_array_header_t *mdl_members_ids(mdl_members_t *members, const char *name)
{
    return member_ids_of(members, name, ask_array(members, name, MDL_OPTIONAL, MAX_LIST));
}

apr_array_header_t *mdl_members_new_ids(mdl_members_t *members, const char *name)
{
    const mdl_json_t *array = ask_array(members, name, MDL_OPTIONAL, MAX_LIST);

    return array != NULL ? member_ids_of(members, name, array) : NULL;
}

/* ask_array for at least one element. */
static const mdl_json_t *ask_filled(mdl_members_t *members, const char *name,
                                    mdl_presence_t presence, apr_size_t max)
{
    const mdl_json_t *array = ask_array(members, name, presence, max);

    if (array != NULL && mdl_json_length(array) == 0) {
        mdl_members_fault(members, name, "wrong_length", "This member must not be empty.");
        return NULL;
    }
    return array;
}

const mdl_json_t *mdl_members_texts(mdl_members_t *members, const char *name,
                                    mdl_presence_t presence, apr_size_t max, apr_size_t max_length,
                                    apr_size_t max_bytes)
{
    const mdl_json_t *array = ask_filled(members, name, presence, max);
    apr_size_t length = mdl_json_length(array);
    mdl_json_t *texts = mdl_json_array(members->pool);

    for (apr_size_t i = 0; i < length; i++) {
        const char *text = mdl_json_string(mdl_json_element(array, i));

        if (text == NULL) {
            member_fault_at(members, name, i, "wrong_type", "This element must be a string.");
            continue;
        }
        text = mdl_utf8_trimmed(text, members->pool);
        mdl_json_add_string(texts, NULL, text);
        if (*text == '\0' || mdl_utf8_length(text) > max_length) {
            member_fault_at(members, name, i, "wrong_length",
                            apr_psprintf(members->pool,
                                         "This element must have 1 to %" APR_SIZE_T_FMT
                                         " characters.",
                                         max_length));
        } else if (strlen(text) > max_bytes) {
            member_fault_at(members, name, i, "wrong_length",
                            apr_psprintf(members->pool,
                                         "This element must have at most %" APR_SIZE_T_FMT
                                         " bytes.",
                                         max_bytes));
        } else if (!mdl_utf8_is_text(text, max_length)) {
            member_fault_at(members, name, i, "invalid",
                            "This element must not have control characters.");
        }
    }
    return array != NULL ? texts : NULL;
}

const mdl_json_t *mdl_members_names(mdl_members_t *members, const char *name,
                                    const char *const *names)
{
    const mdl_json_t *array = ask_filled(members, name, MDL_NULLABLE, MAX_NAMES);
    int seen[MAX_NAMES] = {0};

    for (apr_size_t i = 0; i < mdl_json_length(array); i++) {
        const char *text = mdl_json_string(mdl_json_element(array, i));
        int value = text != NULL ? mdl_names_find(names, text) : -1;

        if (text == NULL) {
            member_fault_at(members, name, i, "wrong_type", "This element must be a string.");
        } else if (value < 0) {
            member_fault_at(members, name, i, "invalid",
                            member_choices("This element", names, members->pool));
        } else if (seen[value]++) {
            member_fault_at(members, name, i, "duplicate",
                            "This element stands in the list already.");
        }
    }
    return array;
}

const mdl_json_t *mdl_members_objects(mdl_members_t *members, const char *name,
                                      mdl_presence_t presence, apr_size_t max)
{
    const mdl_json_t *array = ask_filled(members, name, presence, max);

    for (apr_size_t i = 0; i < mdl_json_length(array); i++) {
        if (mdl_json_type(mdl_json_element(array, i)) != MDL_JSON_OBJECT) {
            member_fault_at(members, name, i, "wrong_type", "This element must be an object.");
        }
    }
    return array;
}

const mdl_json_t *mdl_members_object(mdl_members_t *members, const char *name)
{
    const mdl_json_t *value = member_ask(members, name, MDL_OPTIONAL);

    if (value != NULL && mdl_json_type(value) != MDL_JSON_OBJECT) {
        mdl_members_fault(members, name, "wrong_type", "This member must be an object.");
        return NULL;
    }
    return value;
}
