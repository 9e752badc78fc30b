#include <stdlib.h>

#include <apr_strings.h>

#include "base/text/json.h"
#include "t/unit/tap.h"

#define BODY_LIMIT 262144

static apr_pool_t *p;

static mdl_json_t *parse(const char *text)
{
    return mdl_json_stored(text, p);
}

static void append(void *baton, const char *text, apr_size_t length)
{
    const char **to = baton;

    *to = apr_psprintf(p, "%s%.*s", *to, (int)length, text);
}

static const char *canonical(const char *text)
{
    mdl_json_t *json = parse(text);
    const char *form = "";

    if (json != NULL) {
        mdl_json_canonical(json, append, &form);
    }
    return json != NULL ? form : NULL;
}

/* The message that refuses a text, or NULL if it is accepted. */
static const char *refusal_of(const char *text, apr_size_t length)
{
    const char *why;
    mdl_json_t *json;
    apr_status_t rv = mdl_json_parse(&json, text, length, BODY_LIMIT, &why, p);

    return rv == APR_EINVAL && json == NULL ? why : NULL;
}

static const char *problem(const char *text)
{
    return refusal_of(text, strlen(text));
}

static const char *nested(int levels, const char *open, const char *close)
{
    const char *text = "1";

    for (int i = 0; i < levels; i++) {
        text = apr_pstrcat(p, open, text, close, NULL);
    }
    return text;
}

static int printable(const char *text)
{
    for (; text != NULL && *text; text++) {
        if (*text < 0x20 || *text > 0x7E) {
            return 0;
        }
    }
    return text != NULL;
}

static void parsing_is_strict(void)
{
    ok(problem(""), "an empty text is refused");
    ok(problem(" \n"), "white space alone is refused");
    ok(problem("{\"a\":1} x"), "trailing bytes are refused");
    ok(problem("{\"a\":1}{}"), "a second document is refused");
    ok(!problem("{\"a\":1} \n"), "trailing white space is accepted");
    ok(problem("{\"a\":1,\"a\":1}"), "a duplicate member is refused");
    ok(problem("{\"a\":1,\"\\u0061\":1}"), "a duplicate member with another spelling is refused");
    ok(!problem("[{\"a\":1},{\"a\":1}]"), "the same name in two objects is accepted");
    ok(problem("{\"a\":1,}"), "a trailing comma is refused");
    ok(problem("{'a':1}"), "single quotes are refused");
    ok(problem("{\"a\":NaN}"), "NaN is refused");
    ok(problem("[01]"), "a leading zero is refused");
    ok(problem("[1.]"), "a number that ends in a decimal point is refused");
    ok(problem("[\"\t\"]"), "an unescaped control character in a string is refused");
    ok(!problem("\xEF\xBB\xBF{}"), "a byte order mark is ignored");
    ok(problem("\xEF\xBB\xBF\xEF\xBB\xBF{}"), "a second one is refused");
    ok(problem("\xEF\xBB\xBF"), "one alone is no document");
    ok(problem("[\"a\\u0000b\"]"), "an escaped NUL in a string is refused");
    ok(problem("{\"a\\u0000\":1}"), "an escaped NUL in a name is refused");
    ok(refusal_of("[\"a\0b\"]", 7), "an unescaped NUL in a string is refused");
    ok(refusal_of("[1]\0", 4), "a NUL after the document is refused");
    is_str(mdl_json_string(parse("\"x\"")), "x", "a scalar may be the root");
    is_int(mdl_json_int(parse("42 ")), 42, "a number may be the root");
}

static void utf8_is_strict(void)
{
    is_str(mdl_json_string(parse("\"\xC3\xA9\xF0\x9F\x8E\xB5\"")), "\xC3\xA9\xF0\x9F\x8E\xB5",
           "UTF-8 is read unchanged");
    is_str(mdl_json_string(parse("\"\\ud83c\\udfb5\"")), "\xF0\x9F\x8E\xB5",
           "an escaped surrogate pair is one character");
    ok(problem("[\"\\ud83c\"]"), "a lone high surrogate is refused");
    ok(problem("[\"\\udfb5\"]"), "a lone low surrogate is refused");
    ok(problem("[\"\xFF\"]"), "a byte that is not UTF-8 is refused");
    ok(problem("[\"\xC0\xAF\"]"), "an overlong form is refused");
    ok(problem("[\"\xED\xA0\x80\"]"), "an encoded surrogate is refused");
    ok(problem("[\"\xF4\x90\x80\x80\"]"), "a code point above U+10FFFF is refused");
    ok(problem("[\"\xE2\x82\"]"), "a truncated character is refused");
}

static void depth_is_limited(void)
{
    char *brackets = malloc(BODY_LIMIT);

    ok(!problem(nested(16, "[", "]")), "16 levels of arrays are accepted");
    ok(problem(nested(17, "[", "]")), "17 levels of arrays are refused");
    ok(!problem(nested(16, "{\"a\":", "}")), "16 levels of objects are accepted");
    ok(problem(nested(17, "{\"a\":", "}")), "17 levels of objects are refused");
    ok(!problem(nested(8, "[{\"a\":", "}]")),
       "16 levels of objects and arrays together are accepted");
    ok(problem(nested(9, "[{\"a\":", "}]")),
       "18 levels of objects and arrays together are refused");
    ok(!problem("[\"[[[[[[[[[[[[[[[[[[[[\\\"{{{{{{{{{{{{{{{{{{{{\"]"),
       "brackets in strings do not count");
    ok(!problem("[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]"),
       "sibling arrays do not count");
    is_str(problem("[\n [[[[[[[[[[[[[[[[\n]]]]]]]]]]]]]]]]]"),
           "Line 2, column 17: nested deeper than 16 levels.",
           "the message says where and how many levels");

    memset(brackets, '[', BODY_LIMIT);
    ok(refusal_of(brackets, BODY_LIMIT), "256 KiB of opening brackets are refused");
    memset(brackets, ']', BODY_LIMIT);
    ok(refusal_of(brackets, BODY_LIMIT), "256 KiB of closing brackets are refused");
    memset(brackets, '"', BODY_LIMIT);
    ok(refusal_of(brackets, BODY_LIMIT), "256 KiB of quotation marks are refused");
    memset(brackets, '\\', BODY_LIMIT);
    brackets[0] = '"';
    ok(refusal_of(brackets, BODY_LIMIT), "256 KiB of backslashes in a string are refused");
    free(brackets);
}

static void numbers_keep_their_value(void)
{
    is_int(mdl_json_int(parse("9223372036854775807")), APR_INT64_MAX,
           "the largest integer is read");
    is_int(mdl_json_int(parse("-9223372036854775808")), APR_INT64_MIN,
           "the smallest integer is read");
    is_str(problem("[9223372036854775808]"), "Line 1, column 20: a number is out of range.",
           "an integer beyond 64 bits is refused with a message");
    ok(problem("[-9223372036854775809]"), "a negative integer beyond 64 bits is refused");
    ok(problem("[1e999]"), "a real beyond the range of a double is refused");
    is_int(mdl_json_type(parse("1.5")), MDL_JSON_REAL, "a real is accepted");
    is_int(mdl_json_type(parse("1e2")), MDL_JSON_INT, "a number without a fraction is an integer");
    is_int(mdl_json_int(parse("1e2")), 100, "with its value");
    is_int(mdl_json_int(parse("-3.0")), -3, "also with a point");
    is_int(mdl_json_type(parse("9007199254740993.0")), MDL_JSON_REAL,
           "but not where doubles skip some");
    is_int(mdl_json_type(parse("1e300")), MDL_JSON_REAL, "nor beyond 64 bits");
    is_int(mdl_json_int(parse("1.5")), 0, "a real is read as the integer 0");
}

static void messages_are_clean(void)
{
    ok(printable(problem("[\"\xFF\"]")), "the message about an invalid byte is printable");
    ok(printable(problem("{\"a\": \xC3\xA9}")),
       "the message about a place near a non-ASCII character is printable");
    ok(printable(problem("{\"\xC3\xA9\":1,\"\xC3\xA9\":1}")),
       "the message about a duplicate member is printable");
    ok(printable(problem("[\"a\x01\x1B[31m\"]")),
       "the message about control characters is printable");
    is_str(problem("{\"a\":1,\n\"a\":2}"), "Line 2, column 3: a member stands twice in one object.",
           "line and column are given");
}

/* The number of values counted in a text: the smallest limit that accepts it. */
static int values_of(const char *text)
{
    const char *why;
    mdl_json_t *json;
    int n = 0;

    while (mdl_json_parse(&json, text, strlen(text), (apr_size_t)n, &why, p) == APR_ENOSPC) {
        n++;
    }
    return json != NULL ? n : -1;
}

static void values_are_counted(void)
{
    is_int(values_of("5"), 1, "a scalar is one value");
    is_int(values_of(" [ ] "), 1, "an empty array is one value");
    is_int(values_of("{\n}"), 1, "an empty object is one value");
    is_int(values_of("[1]"), 2, "an element is a value");
    is_int(values_of("[[],{},[ ]]"), 4, "so is one that is a container");
    is_int(values_of("{\"a\":1,\"b\":[2,3]}"), 5, "so is a member");
    is_int(values_of("[\"a,b\",\"[{\",\"\\\",,\",\"\\\\\"]"), 5,
           "commas and brackets in a string are none");
    is_int(values_of("[[[[1]]]]"), 5, "each level is one");
}

static void canonical_form_is_unique(void)
{
    is_str(canonical(" { \"b\" : [ 1 , 2 ] , \"a\" : { \"d\":null, \"c\":true } } "),
           "{\"a\":{\"c\":true,\"d\":null},\"b\":[1,2]}", "members are sorted at each level");
    is_str(canonical("{\"a\\u0062\":\"\\u00e9\\/\"}"), "{\"ab\":\"\xC3\xA9/\"}",
           "needless escapes are removed");
    is_str(canonical("[2,1]"), "[2,1]", "an array keeps its order");
    is_str(canonical("\"x\""), "\"x\"", "a scalar has a canonical form");
    is_str(canonical("[1.10, 1.0, 0.1]"), "[1.1000000000000001,1.0,0.10000000000000001]",
           "a real is written with all its digits");
    is_str(canonical("{ }"), "{}", "and so has an empty object");
}

static void documents_are_made(void)
{
    mdl_json_t *root = mdl_json_object(p);
    mdl_json_t *list;
    apr_size_t length;
    const char *text;

    mdl_json_add_string(root, "z", "1");
    mdl_json_add_int(root, "a", APR_INT64_MIN);
    list = mdl_json_add_array(root, "list");
    mdl_json_add_bool(list, NULL, 1);
    mdl_json_add_null(list, NULL);
    mdl_json_add_string(list, NULL, NULL);
    mdl_json_add_string(mdl_json_add_object(list, NULL), "k", "a\"b\n");
    mdl_json_add_time(root, "at", apr_time_from_sec(1795220180) + 123999);
    mdl_json_add_time(root, "never", 0);
    mdl_json_add_string(root, "bad", "a\xFF");
    text = mdl_json_text(root, &length, p);
    is_str(
        text,
        "{\"z\":\"1\",\"a\":-9223372036854775808,\"list\":[true,null,null,{\"k\":\"a\\\"b\\n\"}],"
        "\"at\":\"2026-11-21T00:16:20.123Z\",\"never\":null,\"bad\":null}",
        "members keep their order, bad UTF-8 and an absent time are null");
    is_int(length, strlen(text), "the length of the text is returned");
    is_str(mdl_json_pretty(parse("{\"b\":[1]}"), p), "{\n  \"b\": [\n    1\n  ]\n}",
           "the pretty form is indented by two spaces");
    ok(!mdl_json_add_object(root, "\xFF"), "nothing is added under a name that is not UTF-8");
    ok(!mdl_json_add_array(NULL, "a"), "nothing is added to NULL");
}

static void collect(void *baton, const char *name, mdl_json_t *value)
{
    const char **seen = baton;

    *seen = apr_psprintf(p, "%s%s=%" APR_INT64_T_FMT ";", *seen, name, mdl_json_int(value));
}

static void reading_another_type_gives_a_default(void)
{
    mdl_json_t *json = parse("{\"b\":1,\"a\":2,\"s\":\"x\",\"n\":null,\"t\":true,\"f\":false}");
    mdl_json_t *list = parse("[1,2,3]");
    const char *seen = "";

    is_int(mdl_json_int(mdl_json_member(json, "b")), 1, "a member is found");
    is_int(mdl_json_type(mdl_json_member(json, "x")), MDL_JSON_ABSENT,
           "a missing member is absent");
    is_int(mdl_json_type(mdl_json_member(json, "n")), MDL_JSON_NULL, "null is not absent");
    is_int(mdl_json_type(mdl_json_member(json, "f")), MDL_JSON_BOOL, "false is a boolean");
    is_int(mdl_json_bool(mdl_json_member(json, "t")), 1, "true is true");
    is_int(mdl_json_bool(mdl_json_member(json, "s")), 0, "a string is not true");
    ok(!mdl_json_string(mdl_json_member(json, "a")), "a number is not a string");
    ok(!mdl_json_member(list, "a"), "an array has no members");
    is_int(mdl_json_length(json), 0, "an object has no length");
    is_int(mdl_json_length(list), 3, "an array has a length");
    is_int(mdl_json_int(mdl_json_element(list, 2)), 3, "an element is found");
    ok(!mdl_json_element(list, 3), "there is no element after the last");
    is_int(mdl_json_type(NULL), MDL_JSON_ABSENT, "NULL is absent");
    ok(!mdl_json_string(NULL) && !mdl_json_member(NULL, "a") && !mdl_json_length(NULL),
       "NULL can be read");
    mdl_json_each(parse("{\"b\":1,\"a\":2,\"c\":3}"), collect, &seen);
    is_str(seen, "b=1;a=2;c=3;", "each member is visited in the document's order");
    mdl_json_each(list, collect, &seen);
    mdl_json_each(NULL, collect, &seen);
    is_str(seen, "b=1;a=2;c=3;", "anything but an object has no member to visit");
}

int main(void)
{
    p = tap_begin();
    parsing_is_strict();
    utf8_is_strict();
    depth_is_limited();
    numbers_keep_their_value();
    messages_are_clean();
    values_are_counted();
    canonical_form_is_unique();
    documents_are_made();
    reading_another_type_gives_a_default();
    return tap_end(p);
}
