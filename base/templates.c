#include "base/templates.h"

#include <stdlib.h>
#include <string.h>

#include <apr_file_info.h>
#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/json.h"

#define TAG_MAX_LENGTH 35 /* RFC 4646 section 4.3.1 */
#define SHOP_PREFIX    "shop-"
#define GENERAL        "" /* the part of a key before a general template's name */

static const struct {
    const char *name;
    mdl_template_kind_t kind;
} names[] = {
    {"email.subject", MDL_TEMPLATE_TEXT}, {"email.txt", MDL_TEMPLATE_TEXT},
    {"email.html", MDL_TEMPLATE_HTML},    {"page.html", MDL_TEMPLATE_HTML},
    {"message.html", MDL_TEMPLATE_HTML},
};
#define NAMES (sizeof names / sizeof *names)

typedef struct {
    const mdl_template_t *template;
    const char *language;
} entry_t;

struct mdl_templates_t {
    apr_hash_t
        *entries; /* by "page.html", "page.de.html", "shop-7/page.html"; tags in lower case */
};

typedef struct {
    mdl_templates_t *templates;
    const char *folder;
    apr_array_header_t *problems;
    apr_pool_t *p;
    apr_pool_t *ptemp;
} reader_t;

static char *lower(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    for (char *at = copy; *at != '\0'; at++) {
        *at = *at == '_' ? '-' : (char)apr_tolower(*at);
    }
    return copy;
}

/* "page.html" and "de": "page.de.html". */
static const char *with_tag(const char *name, const char *tag, apr_pool_t *p)
{
    const char *dot = strchr(name, '.');

    return *tag == '\0' ? name : apr_psprintf(p, "%.*s.%s%s", (int)(dot - name), name, tag, dot);
}

static int is_tag(const char *text, apr_size_t length)
{
    if (length == 0 || length > TAG_MAX_LENGTH || !apr_isalpha(*text)) {
        return 0;
    }
    for (apr_size_t i = 0; i < length; i++) {
        if (!apr_isalnum(text[i]) && text[i] != '-') {
            return 0;
        }
    }
    return 1;
}

/* The index in names of what a file is, and its tag, or "" for none; -1: it is no template. */
static int kind_of(const char *file, const char **tag, apr_pool_t *p)
{
    apr_size_t length = strlen(file);

    for (int i = 0; i < (int)NAMES; i++) {
        const char *dot = strchr(names[i].name, '.');
        apr_size_t stem = (apr_size_t)(dot - names[i].name), ending = strlen(dot);

        if (strcmp(file, names[i].name) == 0) {
            *tag = "";
            return i;
        }
        if (length > stem + 1 + ending && strncmp(file, names[i].name, stem) == 0 &&
            file[stem] == '.' && strcmp(file + length - ending, dot) == 0 &&
            is_tag(file + stem + 1, length - stem - 1 - ending)) {
            *tag = apr_pstrmemdup(p, file + stem + 1, length - stem - 1 - ending);
            return i;
        }
    }
    return -1;
}

static int is_shop(const char *folder)
{
    const char *id = folder + strlen(SHOP_PREFIX);

    return strncmp(folder, SHOP_PREFIX, strlen(SHOP_PREFIX)) == 0 && *id >= '1' && *id <= '9' &&
           id[strspn(id, "0123456789")] == '\0';
}

/* What <html lang="…"> says of a template without a tag. */
static const char *own_language(const mdl_template_t *template, apr_pool_t *p)
{
    const char *html = mdl_template_render(template, mdl_json_object(p), p);
    const char *lang = strstr(html, "<html lang=\"");
    apr_size_t length;

    if (lang == NULL) {
        return "";
    }
    lang += strlen("<html lang=\"");
    length = strcspn(lang, "\"");
    return is_tag(lang, length) ? apr_pstrmemdup(p, lang, length) : "";
}

static void read_file(const reader_t *reader, const char *prefix, const char *file)
{
    mdl_template_t *template;
    const char *tag, *why;
    entry_t *entry;
    int kind = kind_of(file, &tag, reader->p);

    if (kind < 0) {
        return;
    }
    if (mdl_template_read(&template, names[kind].kind,
                          apr_pstrcat(reader->p, reader->folder, "/", prefix, file, NULL), &why,
                          reader->p) != APR_SUCCESS) {
        APR_ARRAY_PUSH(reader->problems, const char *) = why;
        return;
    }
    entry = apr_palloc(reader->p, sizeof *entry);
    entry->template = template;
    entry->language = *tag != '\0' ? tag
                                   : apr_pstrdup(reader->p, own_language(template, reader->ptemp));
    apr_hash_set(reader->templates->entries,
                 apr_pstrcat(reader->p, prefix,
                             with_tag(names[kind].name, lower(tag, reader->p), reader->p), NULL),
                 APR_HASH_KEY_STRING, entry);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, for of two files whose names differ in case alone always the same one is to win. */
static apr_array_header_t *list(const reader_t *reader, const char *prefix)
{
    apr_array_header_t *found = apr_array_make(reader->ptemp, 16, sizeof(const char *));
    const char *path = apr_pstrcat(reader->ptemp, reader->folder, "/", prefix, NULL);
    apr_finfo_t info;
    apr_dir_t *dir;
    apr_status_t rv = apr_dir_open(&dir, path, reader->ptemp);
    char error[120];

    if (rv != APR_SUCCESS) {
        APR_ARRAY_PUSH(reader->problems,
                       const char *) = apr_psprintf(reader->p, "The folder %s can't be read: %s.",
                                                    path, apr_strerror(rv, error, sizeof error));
        return found;
    }
    while ((rv = apr_dir_read(&info, APR_FINFO_NAME, dir)) == APR_SUCCESS || rv == APR_INCOMPLETE) {
        APR_ARRAY_PUSH(found, const char *) = apr_pstrdup(reader->ptemp, info.name);
    }
    apr_dir_close(dir);
    qsort(found->elts, (size_t)found->nelts, sizeof(const char *), by_name);
    return found;
}

/* Those without a language by their names, for each of them has to be there. */
static void read_general(const reader_t *reader, const apr_array_header_t *files)
{
    for (apr_size_t i = 0; i < NAMES; i++) {
        read_file(reader, GENERAL, names[i].name);
    }
    for (int i = 0; i < files->nelts; i++) {
        const char *file = APR_ARRAY_IDX(files, i, const char *);
        const char *tag;

        if (kind_of(file, &tag, reader->ptemp) >= 0 && *tag != '\0') {
            read_file(reader, GENERAL, file);
        }
    }
}

mdl_templates_t *mdl_templates_read(const char *folder, apr_array_header_t *problems, apr_pool_t *p)
{
    mdl_templates_t *templates = apr_pcalloc(p, sizeof *templates);
    reader_t reader = {.templates = templates, .folder = folder, .problems = problems, .p = p};
    apr_array_header_t *files;

    templates->entries = apr_hash_make(p);
    apr_pool_create(&reader.ptemp, p);
    apr_pool_tag(reader.ptemp, "mdl_templates_read");
    files = list(&reader, GENERAL);
    read_general(&reader, files);
    for (int i = 0; i < files->nelts; i++) {
        const char *shop = APR_ARRAY_IDX(files, i, const char *);

        if (is_shop(shop)) {
            const char *prefix = apr_pstrcat(p, shop, "/", NULL);
            apr_array_header_t *own = list(&reader, prefix);

            for (int j = 0; j < own->nelts; j++) {
                read_file(&reader, prefix, APR_ARRAY_IDX(own, j, const char *));
            }
        }
    }
    apr_pool_destroy(reader.ptemp);
    return templates;
}

/* Where a customer's template is looked for, best first. */
typedef struct {
    const mdl_templates_t *templates;
    const char *name;
    const char *places[2]; /* the shop's folder, the general one; NULL: not to be asked */
    apr_pool_t *p;
} search_t;

static const entry_t *entry_of(const search_t *search, int place, const char *tag)
{
    if (search->places[place] == NULL) {
        return NULL;
    }
    return apr_hash_get(
        search->templates->entries,
        apr_pstrcat(search->p, search->places[place], with_tag(search->name, tag, search->p), NULL),
        APR_HASH_KEY_STRING);
}

static search_t search_for(const mdl_templates_t *templates, const char *name, apr_int64_t shop_id,
                           apr_pool_t *p)
{
    search_t search = {templates, name, {NULL, GENERAL}, p};

    if (shop_id != 0) {
        search.places[0] = apr_psprintf(p, SHOP_PREFIX "%" APR_INT64_T_FMT "/", shop_id);
        if (entry_of(&search, 0, "") != NULL) {
            search.places[1] = NULL;
        }
    }
    return search;
}

static const entry_t *entry_in(const search_t *search, const char *tag)
{
    for (int place = 0; place < 2; place++) {
        const entry_t *entry = entry_of(search, place, tag);

        if (entry != NULL) {
            return entry;
        }
        entry = entry_of(search, place, "");
        if (entry != NULL && strcmp(lower(entry->language, search->p), tag) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* RFC 4647 section 3.4: without its last subtag, nor a single letter that would then be the last.
 */
static int shorten(char *tag)
{
    char *dash = strrchr(tag, '-');

    if (dash == NULL) {
        return 0;
    }
    if (dash - tag >= 2 && dash[-2] == '-') {
        dash -= 2;
    }
    *dash = '\0';
    return 1;
}

static const entry_t *match(const search_t *search, const apr_array_header_t *languages)
{
    for (int i = 0; languages != NULL && i < languages->nelts; i++) {
        char *tag = lower(APR_ARRAY_IDX(languages, i, const char *), search->p);

        if (!is_tag(tag, strlen(tag))) {
            continue;
        }
        do {
            const entry_t *entry = entry_in(search, tag);

            if (entry != NULL) {
                return entry;
            }
        } while (shorten(tag));
    }
    return NULL;
}

static const mdl_template_t *result(const entry_t *entry, const char **language)
{
    *language = entry != NULL ? entry->language : "";
    return entry != NULL ? entry->template : NULL;
}

const mdl_template_t *mdl_templates_match(const mdl_templates_t *templates, const char *name,
                                          apr_int64_t shop_id, const apr_array_header_t *languages,
                                          const char **language, apr_pool_t *p)
{
    search_t search = search_for(templates, name, shop_id, p);

    return result(match(&search, languages), language);
}

const mdl_template_t *mdl_templates_get(const mdl_templates_t *templates, const char *name,
                                        apr_int64_t shop_id, const apr_array_header_t *languages,
                                        const char **language, apr_pool_t *p)
{
    search_t search = search_for(templates, name, shop_id, p);
    const entry_t *entry = match(&search, languages);

    for (int place = 0; entry == NULL && place < 2; place++) {
        entry = entry_of(&search, place, "");
    }
    return result(entry, language);
}
