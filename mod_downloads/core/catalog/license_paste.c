#include "core/catalog/license_paste.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "base/text/utf8.h"
#include "core/catalog/license.h"

/* What the column of the keys is called, in lower case. */
static const char *const names[] = {"key",         "keys",
                                    "license key", "license keys",
                                    "license_key", "licence key",
                                    "license",     "code",
                                    "codes",       "activation code",
                                    "serial",      "serial number",
                                    "schlüssel",   "lizenzschlüssel",
                                    "clé",         "clé de licence",
                                    "clave",       "clave de licencia",
                                    NULL};

typedef struct {
    const char *rest; /* of the text */
    int number;       /* of the line read last */
    char separator;   /* of a table's columns; '\0': there is no table */
    int column;       /* of the keys */
    mdl_problem_t *problem;
    apr_pool_t *pool;    /* of the problem */
    apr_pool_t *scratch; /* of a line */
} paste_t;

/* Sets the next line without its end and unseen edges; 0 after the last. */
static int paste_next(paste_t *paste, const char **line)
{
    apr_size_t length = strcspn(paste->rest, "\r\n");
    const char *end = paste->rest + length;

    if (*paste->rest == '\0') {
        return 0;
    }
    apr_pool_clear(paste->scratch);
    *line = mdl_utf8_trimmed(apr_pstrmemdup(paste->scratch, paste->rest, length), paste->scratch);
    paste->rest = end + (end[0] == '\r' && end[1] == '\n') + (*end != '\0');
    paste->number++;
    return 1;
}

/* The content of a quoted field; *at is moved behind it.  NULL: the quote is not closed. */
static const char *field_unquote(const char **at, apr_pool_t *p)
{
    const char *from = *at + 1;
    char *field = apr_palloc(p, strlen(from) + 1), *to = field;

    while (*from != '\0' && (from[0] != '"' || from[1] == '"')) {
        from += *from == '"';
        *to++ = *from++;
    }
    *to = '\0';
    *at = from + 1;
    return *from == '"' ? field : NULL;
}

/* The next field of a line; *at is moved behind its separator.  NULL: its quotes are wrong. */
static const char *field_read(const char **at, char separator, apr_pool_t *p)
{
    const char *end = strchr(*at, separator), *field;

    if (**at == '"') {
        field = field_unquote(at, p);
        if (field == NULL || (**at != '\0' && **at != separator)) {
            return NULL;
        }
    } else {
        end = end != NULL ? end : *at + strlen(*at);
        field = apr_pstrmemdup(p, *at, (apr_size_t)(end - *at));
        *at = end;
    }
    *at += **at != '\0';
    return mdl_utf8_trimmed(field, p);
}

static int name_is_known(const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcasecmp(names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a line names the columns of a table, among them that of the keys. */
static int paste_read_names(paste_t *paste, const char *line)
{
    const char *at = strpbrk(line, "\t;,"), *name;

    paste->separator = at != NULL ? *at : ',';
    for (paste->column = 0; *line != '\0'; paste->column++) {
        name = field_read(&line, paste->separator, paste->scratch);
        if (name == NULL) {
            break;
        }
        if (name_is_known(name)) {
            return 1;
        }
    }
    paste->separator = '\0';
    paste->column = 0;
    return 0;
}

/* The key of a line; NULL: its quotes are wrong, or it could be a table's. */
static const char *paste_key(const paste_t *paste, const char *line)
{
    const char *key = "";

    if (paste->separator == '\0' && *line != '"') {
        return strpbrk(line, ",;\t") == NULL ? line : NULL;
    }
    for (int i = 0; key != NULL && i <= paste->column; i++) {
        key = field_read(&line, paste->separator, paste->scratch);
    }
    return key;
}

static apr_status_t paste_refuse(const paste_t *paste, int status, const char *code,
                                 const char *format)
{
    mdl_problem_count(paste->problem, MDL_LICENSE_KEYS_MAX, paste->number);
    return mdl_problem_set(paste->problem, status, code,
                           apr_psprintf(paste->pool, format, paste->number));
}

static apr_status_t paste_add(const paste_t *paste, const char *line, mdl_json_t *keys)
{
    const char *key = paste_key(paste, line);

    if (key == NULL) {
        return paste_refuse(paste, 400, "license_keys_table",
                            "Line %d is no single key. Name the column of the keys \"License key\" "
                            "in the first line, or put keys with a comma or semicolon in quotes.");
    }
    if (*key == '\0') {
        return APR_SUCCESS;
    }
    if (!mdl_utf8_is_text(key, MDL_LICENSE_KEY_MAX) || strlen(key) > MDL_LICENSE_KEY_MAX_BYTES) {
        return paste_refuse(paste, 400, "license_key_invalid",
                            "Line %d is no license key: it has up to 512 characters, none of them "
                            "a control character.");
    }
    if (mdl_json_length(keys) == MDL_LICENSE_KEYS_MAX) {
        return paste_refuse(paste, 413, "license_keys_many",
                            "These are too many keys at once: the 10,001st is in line %d.");
    }
    mdl_json_add_string(keys, NULL, key);
    return APR_SUCCESS;
}

apr_status_t mdl_license_paste(const char *text, const mdl_json_t **keys, mdl_problem_t *problem,
                               apr_pool_t *p)
{
    paste_t paste = {.rest = text, .problem = problem, .pool = p};
    mdl_json_t *list = mdl_json_array(p);
    apr_status_t rv = APR_SUCCESS;
    const char *line;
    int first = 1;

    apr_pool_create(&paste.scratch, p);
    apr_pool_tag(paste.scratch, "mdl_license_paste");
    while (rv == APR_SUCCESS && paste_next(&paste, &line)) {
        if (*line == '\0') {
            continue;
        }
        if (!first || !paste_read_names(&paste, line)) {
            rv = paste_add(&paste, line, list);
        }
        first = 0;
    }
    apr_pool_destroy(paste.scratch);
    *keys = list;
    return rv == APR_SUCCESS && mdl_json_length(list) == 0
               ? mdl_problem_set(problem, 400, "license_keys_none", "There is no key in there.")
               : rv;
}
