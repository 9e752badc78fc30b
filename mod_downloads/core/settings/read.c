#include "core/settings/settings.h"

#include <stdlib.h>
#include <string.h>

#include <apr_env.h>
#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_fnmatch.h>
#include <apr_lib.h>
#include <apr_strings.h>

#define MAX_FILE_SIZE     (1024 * 1024)
#define MAX_INCLUDE_DEPTH 20
#define MAX_PROBLEMS      20 /* files that include each other would never end */

typedef struct {
    mdl_settings_t *settings;
    apr_array_header_t *problems;
    apr_table_t *defines;
    int depth;        /* of Include */
    int virtual_host; /* whether inside of <VirtualHost> */
    int line;         /* the number of the line that is read */
    apr_pool_t *p;
} reader_t;

static const char *file_read(reader_t *reader, const char *path);

static void settings_reader_add_problem(reader_t *reader, const char *sentence)
{
    APR_ARRAY_PUSH(reader->problems, const char *) = sentence;
}

static const char *settings_read_text(char **text, const char *path, apr_pool_t *p)
{
    apr_finfo_t info;
    apr_file_t *file;
    apr_size_t length = 0;
    apr_status_t rv;
    char reason[120];
    char *buffer = NULL;

    rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_OS_DEFAULT, p);
    if (rv == APR_SUCCESS) {
        rv = apr_file_info_get(&info, APR_FINFO_TYPE | APR_FINFO_SIZE, file);
        if (rv == APR_SUCCESS && (info.filetype != APR_REG || info.size > MAX_FILE_SIZE)) {
            apr_file_close(file);
            return apr_psprintf(p, "%s: is not a regular file of at most 1 MiB.", path);
        }
        if (rv == APR_SUCCESS) {
            length = (apr_size_t)info.size;
            buffer = apr_pcalloc(p, length + 1);
            rv = apr_file_read_full(file, buffer, length, &length);
        }
        apr_file_close(file);
    }
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return apr_psprintf(p, "%s: can't be read: %s.", path,
                            apr_strerror(rv, reason, sizeof reason));
    }
    *text = buffer;
    return NULL;
}

/*
 * Takes a line without its end, and the lines that a backslash joins to it; *lines gets how many.
 * The lines are joined in place, which only makes them shorter.
 */
static char *line_next(char **text, int *lines)
{
    char *line = *text;
    char *end = line;

    for (*lines = 1; **text != '\0'; (*lines)++) {
        char *newline = strchr(*text, '\n');
        apr_size_t length = newline != NULL ? (apr_size_t)(newline - *text) : strlen(*text);

        memmove(end, *text, length);
        end += length;
        *text += newline != NULL ? length + 1 : length;
        if (end > line && end[-1] == '\r') {
            end--;
        }
        if (newline == NULL || end == line || end[-1] != '\\') {
            break;
        }
        end--;
    }
    while (end > line && apr_isspace(end[-1])) {
        end--;
    }
    *end = '\0';
    return line + strspn(line, " \t\v\f\r");
}

/* Takes a word as httpd does: a backslash escapes itself and, within quotes, the quote. */
static char *word_next(const char **line, apr_pool_t *p)
{
    char *word = apr_palloc(p, strlen(*line) + 1);
    char *end = word;
    const char *at = *line;
    char quote = *at == '"' || *at == '\'' ? *at++ : '\0';

    while (*at && (quote ? *at != quote : !apr_isspace(*at))) {
        if (at[0] == '\\' && (at[1] == '\\' || (quote && at[1] == quote))) {
            at++;
        }
        *end++ = *at++;
    }
    *end = '\0';
    if (quote && *at) {
        at++;
    }
    while (apr_isspace(*at)) {
        at++;
    }
    *line = at;
    return word;
}

/* Replaces each ${NAME} in *line by its value; returns NULL, or a sentence if one is unknown. */
static const char *line_expand(const reader_t *reader, const char **line, apr_pool_t *p)
{
    const char *rest = *line;
    const char *done = "";
    const char *start;
    const char *end;

    while ((start = strstr(rest, "${")) != NULL && (end = strchr(start, '}')) != NULL) {
        const char *name = apr_pstrmemdup(p, start + 2, (apr_size_t)(end - start - 2));
        const char *value = apr_table_get(reader->defines, name);
        char *from_environment = NULL;

        if (value == NULL && apr_env_get(&from_environment, name, p) == APR_SUCCESS) {
            value = from_environment;
        }
        if (value == NULL) {
            return apr_psprintf(p,
                                "uses ${%s}, which is neither in the environment nor given by a "
                                "Define before it.",
                                name);
        }
        done = apr_pstrcat(p, done, apr_pstrmemdup(p, rest, (apr_size_t)(start - rest)), value,
                           NULL);
        rest = end + 1;
    }
    *line = apr_pstrcat(p, done, rest, NULL);
    return NULL;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *include_read(reader_t *reader, const char *from, const char *path, int optional,
                                apr_pool_t *p)
{
    apr_array_header_t *names = NULL;
    const char *slash;
    const char *folder;
    int i;

    if (path[0] != '/') {
        slash = strrchr(from, '/');
        folder = slash != NULL ? apr_pstrmemdup(p, from, (apr_size_t)(slash - from)) : ".";
        path = apr_pstrcat(p, folder, "/", path, NULL);
    }
    slash = strrchr(path, '/');
    if (!apr_fnmatch_test(slash + 1)) {
        apr_finfo_t info;

        if (optional && apr_stat(&info, path, APR_FINFO_TYPE, p) != APR_SUCCESS) {
            return NULL;
        }
        return file_read(reader, path);
    }

    if (apr_match_glob(path, &names, p) != APR_SUCCESS || names->nelts == 0) {
        return optional ? NULL : apr_psprintf(p, "finds no file for %s.", path);
    }
    qsort(names->elts, (size_t)names->nelts, sizeof(const char *), compare_paths);
    folder = apr_pstrmemdup(p, path, (apr_size_t)(slash + 1 - path));
    for (i = 0; i < names->nelts; i++) {
        const char *why = file_read(
            reader, apr_pstrcat(p, folder, APR_ARRAY_IDX(names, i, const char *), NULL));

        if (why != NULL) {
            return why;
        }
    }
    return NULL;
}

static int is_of_settings(const char *name)
{
    return strncasecmp(name, "Downloads", 9) == 0 || strcasecmp(name, "DBDriver") == 0 ||
           strcasecmp(name, "DBDParams") == 0;
}

static const char *line_take(reader_t *reader, const char *path, const char *line, apr_pool_t *p)
{
    const char *name = word_next(&line, p);
    int optional = strcasecmp(name, "IncludeOptional") == 0;
    int including = optional || strcasecmp(name, "Include") == 0;
    int defining = strcasecmp(name, "Define") == 0;
    apr_array_header_t *arguments = apr_array_make(p, 4, sizeof(const char *));
    const char *why;

    if (strncasecmp(name, "<VirtualHost", 12) == 0 || strncasecmp(name, "</VirtualHost", 13) == 0) {
        reader->virtual_host = name[1] != '/';
    }
    if (reader->virtual_host || !(including || defining || is_of_settings(name))) {
        return NULL;
    }

    why = line_expand(reader, &line, p);
    if (why != NULL) {
        return apr_pstrcat(p, name, " ", why, NULL);
    }
    while (*line != '\0') {
        APR_ARRAY_PUSH(arguments, const char *) = word_next(&line, p);
    }
    if (defining) {
        if (arguments->nelts > 0) {
            apr_table_set(reader->defines, APR_ARRAY_IDX(arguments, 0, const char *),
                          arguments->nelts > 1 ? APR_ARRAY_IDX(arguments, 1, const char *) : "");
        }
        return NULL;
    }
    if (including) {
        if (arguments->nelts != 1) {
            return apr_pstrcat(p, name, " takes one path.", NULL);
        }
        why = include_read(reader, path, APR_ARRAY_IDX(arguments, 0, const char *), optional, p);
    } else {
        why = mdl_settings_set(reader->settings, name, arguments->nelts,
                               (const char *const *)arguments->elts, p);
        if (why == NULL) {
            APR_ARRAY_PUSH(reader->settings->given, mdl_settings_given_t) = (mdl_settings_given_t){
                name, apr_array_pstrcat(p, arguments, ' '), path, reader->line};
        }
    }
    return why != NULL ? apr_pstrcat(p, name, " ", why, NULL) : NULL;
}

/* Adds what is wrong in the file to the problems.  Returns NULL, or what is wrong with including
 * it. */
static const char *file_read(reader_t *reader, const char *path)
{
    apr_pool_t *p = reader->p;
    char *text = NULL;
    const char *why;
    int number = 1;
    int lines;

    if (reader->depth == MAX_INCLUDE_DEPTH) {
        return apr_psprintf(p, "is more than %d files deep at %s.", MAX_INCLUDE_DEPTH, path);
    }
    why = settings_read_text(&text, path, p);
    if (why != NULL) {
        settings_reader_add_problem(reader, why);
        return NULL;
    }
    reader->depth++;
    for (; *text && reader->problems->nelts < MAX_PROBLEMS; number += lines) {
        const char *line = line_next(&text, &lines);

        reader->line = number;
        why = line_take(reader, path, line, p);
        if (why != NULL) {
            settings_reader_add_problem(reader, apr_psprintf(p, "%s:%d: %s", path, number, why));
        }
    }
    reader->depth--;
    return NULL;
}

void mdl_settings_read(mdl_settings_t *settings, const char *path, apr_array_header_t *problems,
                       apr_pool_t *p)
{
    reader_t reader = {settings, problems, apr_table_make(p, 4), 0, 0, 0, p};

    file_read(&reader, path);
}
