#include "base/text/templates.h"

#include <stdlib.h>
#include <string.h>

#include <apr_file_info.h>
#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/text/words.h"

#define TAG_MAX_LENGTH 35 /* RFC 4646 section 4.3.1 */
#define SHOP_PREFIX    "shop-"
#define GENERAL        "" /* the prefix of the files in the folder itself */
#define PARTIAL        ".mustache"
#define WORDS          ".words"
#define ENGLISH        "en"

/* A file that was read. */
typedef struct {
    mdl_template_file_t file;
    const char *name; /* "page.html", "month.mustache" */
    const char *tag;  /* "de-AT", or "" */
    const char *key;  /* "page.de-at.html" */
} source_t;

/* A compiled template, with its partials. */
typedef struct {
    const char *name;
    const mdl_template_t *template;
    const char *language;
} entry_t;

/* A set has the templates for one shop's customers: its own, and general ones for the rest. */
struct mdl_templates_t {
    apr_hash_t *sets; /* by prefix; a set's keys: "page.html", "page.de.html", tags in lower case */
};

typedef struct {
    const char *folder;
    const char *general; /* the prefix of the general templates: "" or "settings/" */
    const char *const *names;
    apr_array_header_t *problems;
    apr_array_header_t *sources;   /* source_t *, by name, the general ones first */
    apr_hash_t *by_path;           /* by prefix and key */
    apr_hash_t *words;             /* mdl_words_t *, by prefix and tag in lower case */
    apr_array_header_t *languages; /* const char *: the tags of the files of words */
    apr_hash_t *staff_words;       /* the words that staff alone reads */
    apr_pool_t *p;
    apr_pool_t *ptemp;
} reader_t;

static char *tag_lower(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    for (char *at = copy; *at != '\0'; at++) {
        *at = *at == '_' ? '-' : (char)apr_tolower(*at);
    }
    return copy;
}

/* "page.html" and "de": "page.de.html". */
static const char *name_with_tag(const char *name, const char *tag, apr_pool_t *p)
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

static int ends_with(const char *text, const char *ending)
{
    apr_size_t length = strlen(text), tail = strlen(ending);

    return length > tail && strcmp(text + length - tail, ending) == 0;
}

/* Splits "page.de.html" into "page.html" and "de"; 0 for neither one of the names nor a partial. */
static int name_split(const reader_t *reader, const char *file, const char **name, const char **tag)
{
    const char *dot = strchr(file, '.'), *ending = strrchr(file, '.');

    *name = apr_pstrdup(reader->p, file);
    *tag = "";
    if (dot != ending) {
        if (!is_tag(dot + 1, (apr_size_t)(ending - dot - 1))) {
            return 0;
        }
        *tag = apr_pstrmemdup(reader->p, dot + 1, (apr_size_t)(ending - dot - 1));
        *name = apr_psprintf(reader->p, "%.*s%s", (int)(dot - file), file, ending);
    }
    for (const char *const *known = reader->names; *known != NULL; known++) {
        if (strcmp(*name, *known) == 0) {
            return 1;
        }
    }
    return ends_with(*name, PARTIAL);
}

static int is_shop_folder(const char *folder)
{
    const char *id = folder + strlen(SHOP_PREFIX);

    return strncmp(folder, SHOP_PREFIX, strlen(SHOP_PREFIX)) == 0 && *id >= '1' && *id <= '9' &&
           id[strspn(id, "0123456789")] == '\0';
}

/* Whether a template uses words: then it exists in every language that has a file of words. */
static int source_has_words(const source_t *source)
{
    return strstr(source->file.text, "{{@") != NULL;
}

/* The language of a template without a tag: its words', else that of <html lang="…">, or "". */
static const char *language_of(const source_t *source, apr_pool_t *p)
{
    const char *lang = strstr(source->file.text, "<html lang=\"");
    apr_size_t length;

    if (source_has_words(source)) {
        return ENGLISH;
    }
    if (lang == NULL) {
        return "";
    }
    lang += strlen("<html lang=\"");
    length = strcspn(lang, "\"");
    return is_tag(lang, length) ? apr_pstrmemdup(p, lang, length) : "";
}

/* A fault in a partial is found in every template that includes it, but reported once. */
static void reader_add_problem(const reader_t *reader, const char *why)
{
    for (int i = 0; i < reader->problems->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(reader->problems, i, const char *), why) == 0) {
            return;
        }
    }
    APR_ARRAY_PUSH(reader->problems, const char *) = why;
}

static const source_t *reader_find(const reader_t *reader, const char *prefix, const char *name,
                                   const char *tag)
{
    return apr_hash_get(
        reader->by_path,
        apr_pstrcat(reader->ptemp, prefix, name_with_tag(name, tag, reader->ptemp), NULL),
        APR_HASH_KEY_STRING);
}

static void reader_read_file(const reader_t *reader, const char *prefix, const char *file)
{
    source_t *source = apr_palloc(reader->p, sizeof *source);
    const char *why;

    if (!name_split(reader, file, &source->name, &source->tag)) {
        return;
    }
    source->key = name_with_tag(source->name, tag_lower(source->tag, reader->p), reader->p);
    if (mdl_template_read(&source->file,
                          apr_pstrcat(reader->ptemp, reader->folder, "/", prefix, file, NULL), &why,
                          reader->p) != APR_SUCCESS) {
        reader_add_problem(reader, why);
        return;
    }
    APR_ARRAY_PUSH(reader->sources, source_t *) = source;
    apr_hash_set(reader->by_path, apr_pstrcat(reader->p, prefix, source->key, NULL),
                 APR_HASH_KEY_STRING, source);
}

/* Reads a file of words, "pt-BR.words"; ignores other files. */
static void reader_read_words(const reader_t *reader, const char *prefix, const char *file)
{
    const char *tag, *why;
    mdl_words_t *words;

    if (!ends_with(file, WORDS) || !is_tag(file, strlen(file) - strlen(WORDS))) {
        return;
    }
    tag = apr_pstrmemdup(reader->p, file, strlen(file) - strlen(WORDS));
    if (mdl_words_read(&words, apr_pstrcat(reader->ptemp, reader->folder, "/", prefix, file, NULL),
                       tag, &why, reader->p) != APR_SUCCESS) {
        reader_add_problem(reader, why);
        return;
    }
    apr_hash_set(reader->words,
                 apr_pstrcat(reader->ptemp, prefix, tag_lower(tag, reader->ptemp), NULL),
                 APR_HASH_KEY_STRING, words);
    APR_ARRAY_PUSH(reader->languages, const char *) = tag;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists files sorted, so that the choice among names that differ only in case is stable. */
static apr_array_header_t *reader_list(const reader_t *reader, const char *prefix)
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

/* RFC 4647 section 3.4: drops the last subtag, and a single letter that would then be the last. */
static int tag_shorten(char *tag)
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

/* The audience for which a template is compiled. */
typedef struct {
    const reader_t *reader;
    const char *prefix;
    const char *tag;
} audience_t;

static const mdl_template_file_t *template_find_partial(void *baton, const char *name)
{
    const audience_t *audience = baton;
    const reader_t *reader = audience->reader;
    const char *file = apr_pstrcat(reader->ptemp, name, PARTIAL, NULL);
    char *tag = tag_lower(audience->tag, reader->ptemp);

    for (;;) {
        const source_t *source = reader_find(reader, audience->prefix, file, tag);

        if (source == NULL && reader_find(reader, audience->prefix, file, "") == NULL) {
            source = reader_find(reader, reader->general, file, tag);
        }
        if (source != NULL || *tag == '\0') {
            return source != NULL ? &source->file : NULL;
        }
        if (!tag_shorten(tag)) {
            *tag = '\0';
        }
    }
}

static const mdl_word_t *words_find(const reader_t *reader, const char *prefix, const char *tag,
                                    const char *key)
{
    const mdl_words_t *words = apr_hash_get(
        reader->words, apr_pstrcat(reader->ptemp, prefix, tag, NULL), APR_HASH_KEY_STRING);

    return words != NULL ? apr_hash_get(words->by_key, key, APR_HASH_KEY_STRING) : NULL;
}

/* A shop's own word precedes the general one, and the language precedes English. */
static const mdl_word_t *template_find_word(void *baton, const char *key)
{
    const audience_t *audience = baton;
    const reader_t *reader = audience->reader;
    char *tag = tag_lower(audience->tag, reader->ptemp);

    for (int last = 0;; last = strcmp(tag, ENGLISH) == 0) {
        const mdl_word_t *word = words_find(reader, audience->prefix, tag, key);

        if (word == NULL) {
            word = words_find(reader, GENERAL, tag, key);
        }
        if (word != NULL || last) {
            return word;
        }
        if (!tag_shorten(tag)) {
            tag = apr_pstrdup(reader->ptemp, ENGLISH);
        }
    }
}

static void reader_note_staff_words(const reader_t *reader)
{
    const mdl_words_t *english = apr_hash_get(reader->words, ENGLISH, APR_HASH_KEY_STRING);

    for (int i = 0, found = 0; english != NULL && i < english->words->nelts; i++) {
        const char *key = APR_ARRAY_IDX(english->words, i, const mdl_word_t *)->key;

        found |= strcmp(key, MDL_WORDS_OF_STAFF) == 0;
        if (found) {
            apr_hash_set(reader->staff_words, key, APR_HASH_KEY_STRING, key);
        }
    }
}

static int source_is_for_staff(const reader_t *reader, const source_t *source)
{
    const apr_array_header_t *names = mdl_template_names(&source->file, reader->ptemp);

    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        if (*name == '@' &&
            apr_hash_get(reader->staff_words, name + 1, APR_HASH_KEY_STRING) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Whether staff can be told something in a language. */
static int language_is_for_staff(const reader_t *reader, const char *prefix, const char *language)
{
    audience_t audience = {reader, prefix, language}, english = {reader, prefix, ENGLISH};

    return template_find_word(&audience, MDL_WORDS_OF_STAFF) !=
           template_find_word(&english, MDL_WORDS_OF_STAFF);
}

/* Compiles a source into a set, in a language. */
static void reader_compile(const reader_t *reader, apr_hash_t *set, const char *prefix,
                           const source_t *source, const char *key, const char *language)
{
    audience_t audience = {reader, prefix, language};
    mdl_template_finder_t finder = {template_find_partial, template_find_word, &audience};
    entry_t *entry = apr_palloc(reader->p, sizeof *entry);
    mdl_template_t *template;
    const char *why;

    if (mdl_template_parse(&template,
                           ends_with(source->name, ".html") ? MDL_TEMPLATE_HTML : MDL_TEMPLATE_TEXT,
                           &source->file, &finder, &why, reader->p) != APR_SUCCESS) {
        reader_add_problem(reader, why);
        return;
    }
    *entry = (entry_t){source->name, template, language};
    apr_hash_set(set, key, APR_HASH_KEY_STRING, entry);
}

static void reader_read_files(const reader_t *reader, const char *prefix,
                              const apr_array_header_t *files)
{
    for (int i = 0; i < files->nelts; i++) {
        reader_read_file(reader, prefix, APR_ARRAY_IDX(files, i, const char *));
    }
}

/* Compiles a template with words for the languages in which it has no file. */
static void reader_translate(const reader_t *reader, apr_hash_t *set, const char *prefix,
                             const source_t *source)
{
    int for_staff = source_is_for_staff(reader, source);

    for (int i = 0; i < reader->languages->nelts; i++) {
        const char *language = APR_ARRAY_IDX(reader->languages, i, const char *);
        const char *key = name_with_tag(source->name, tag_lower(language, reader->p), reader->p);

        if (strcmp(language, ENGLISH) != 0 && apr_hash_get(set, key, APR_HASH_KEY_STRING) == NULL &&
            (!for_staff || language_is_for_staff(reader, prefix, language))) {
            reader_compile(reader, set, prefix, source, key, language);
        }
    }
}

/* Compiles sources[from] to sources[to - 1] for the customers of a prefix. */
static apr_hash_t *reader_compile_all(const reader_t *reader, const char *prefix, int from, int to)
{
    apr_hash_t *set = apr_hash_make(reader->p);

    for (int i = from; i < to; i++) {
        const source_t *source = APR_ARRAY_IDX(reader->sources, i, const source_t *);

        if (!ends_with(source->name, PARTIAL)) {
            reader_compile(reader, set, prefix, source, source->key,
                           *source->tag != '\0' ? source->tag : language_of(source, reader->p));
        }
    }
    for (int i = from; i < to; i++) {
        const source_t *source = APR_ARRAY_IDX(reader->sources, i, const source_t *);

        if (!ends_with(source->name, PARTIAL) && *source->tag == '\0' && source_has_words(source)) {
            reader_translate(reader, set, prefix, source);
        }
    }
    return set;
}

/* A shop's set: its own templates, and the general ones compiled with its partials and words. */
static apr_hash_t *reader_shop_set(const reader_t *reader, const char *prefix, apr_hash_t *general)
{
    apr_hash_t *own_set, *rest = apr_hash_make(reader->p);
    int first = reader->sources->nelts, languages = reader->languages->nelts, partials;
    apr_array_header_t *files = reader_list(reader, prefix);

    reader_read_files(reader, prefix, files);
    for (int i = 0; i < files->nelts; i++) {
        reader_read_words(reader, prefix, APR_ARRAY_IDX(files, i, const char *));
    }
    partials = reader->languages->nelts > languages;
    for (int i = first; i < reader->sources->nelts; i++) {
        partials += ends_with(APR_ARRAY_IDX(reader->sources, i, source_t *)->name, PARTIAL);
    }
    own_set = reader_compile_all(reader, prefix, first, reader->sources->nelts);
    if (partials > 0) {
        general = apr_hash_overlay(reader->p, reader_compile_all(reader, prefix, 0, first),
                                   general);
    }
    for (apr_hash_index_t *at = apr_hash_first(reader->ptemp, general); at != NULL;
         at = apr_hash_next(at)) {
        const entry_t *entry = apr_hash_this_val(at);

        if (apr_hash_get(own_set, entry->name, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(rest, apr_hash_this_key(at), APR_HASH_KEY_STRING, entry);
        }
    }
    reader->sources->nelts = first;
    reader->languages->nelts = languages;
    return apr_hash_overlay(reader->p, own_set, rest);
}

/* Reads the general templates, and those of one shop's folder ("shop-7"), or of all for NULL. */
static mdl_templates_t *templates_read(const char *folder, const char *base, const char *only,
                                       const char *const *names, apr_array_header_t *problems,
                                       apr_pool_t *p)
{
    reader_t reader = {
        .folder = folder, .general = base, .names = names, .problems = problems, .p = p};
    mdl_templates_t *templates = apr_pcalloc(p, sizeof *templates);
    apr_array_header_t *files;
    apr_hash_t *general;

    templates->sets = apr_hash_make(p);
    apr_pool_create(&reader.ptemp, p);
    apr_pool_tag(reader.ptemp, "mdl_templates_read");
    reader.sources = apr_array_make(reader.ptemp, 32, sizeof(source_t *));
    reader.by_path = apr_hash_make(reader.ptemp);
    reader.words = apr_hash_make(reader.ptemp);
    reader.languages = apr_array_make(reader.ptemp, 4, sizeof(const char *));
    reader.staff_words = apr_hash_make(reader.ptemp);
    files = reader_list(&reader, GENERAL);
    for (int i = 0; i < files->nelts; i++) {
        reader_read_words(&reader, GENERAL, APR_ARRAY_IDX(files, i, const char *));
    }
    if (apr_hash_get(reader.words, ENGLISH, APR_HASH_KEY_STRING) == NULL) {
        reader_read_words(&reader, GENERAL, ENGLISH WORDS);
    }
    reader_note_staff_words(&reader);
    if (*reader.general != '\0') {
        files = reader_list(&reader, reader.general);
    }
    reader_read_files(&reader, reader.general, files);
    for (const char *const *name = reader.names; *name != NULL; name++) {
        if (reader_find(&reader, reader.general, *name, "") == NULL) {
            reader_read_file(&reader, reader.general, *name);
        }
    }
    general = reader_compile_all(&reader, reader.general, 0, reader.sources->nelts);
    apr_hash_set(templates->sets, GENERAL, APR_HASH_KEY_STRING, general);
    for (int i = 0; i < files->nelts; i++) {
        const char *shop = APR_ARRAY_IDX(files, i, const char *);

        if (is_shop_folder(shop) && (only == NULL || strcmp(shop, only) == 0)) {
            const char *prefix = apr_pstrcat(p, shop, "/", NULL);

            apr_hash_set(templates->sets, prefix, APR_HASH_KEY_STRING,
                         reader_shop_set(&reader, prefix, general));
        }
    }
    apr_pool_destroy(reader.ptemp);
    return templates;
}

mdl_templates_t *mdl_templates_read(const char *folder, const char *const *names,
                                    apr_array_header_t *problems, apr_pool_t *p)
{
    return templates_read(folder, GENERAL, NULL, names, problems, p);
}

mdl_templates_t *mdl_templates_read_settings(const char *folder, const char *const *names,
                                             apr_array_header_t *problems, apr_pool_t *p)
{
    return templates_read(folder, "settings/", NULL, names, problems, p);
}

const char *mdl_templates_shop_folder(apr_int64_t shop_id, apr_pool_t *p)
{
    return apr_psprintf(p, SHOP_PREFIX "%" APR_INT64_T_FMT, shop_id);
}

mdl_templates_t *mdl_templates_read_shop(const char *folder, apr_int64_t shop_id,
                                         const char *const *names, apr_array_header_t *problems,
                                         apr_pool_t *p)
{
    return templates_read(folder, GENERAL, mdl_templates_shop_folder(shop_id, p), names, problems,
                          p);
}

/* The set for a shop's customers (0: shop unknown). */
static apr_hash_t *templates_set_for(const mdl_templates_t *templates, apr_int64_t shop_id,
                                     apr_pool_t *p)
{
    apr_hash_t *set = apr_hash_get(templates->sets,
                                   apr_pstrcat(p, mdl_templates_shop_folder(shop_id, p), "/", NULL),
                                   APR_HASH_KEY_STRING);

    return set != NULL ? set : apr_hash_get(templates->sets, GENERAL, APR_HASH_KEY_STRING);
}

static const entry_t *set_find(apr_hash_t *set, const char *name, const char *tag, apr_pool_t *p)
{
    const entry_t *entry = apr_hash_get(set, name_with_tag(name, tag, p), APR_HASH_KEY_STRING);

    if (entry != NULL) {
        return entry;
    }
    entry = apr_hash_get(set, name, APR_HASH_KEY_STRING);
    return entry != NULL && strcmp(tag_lower(entry->language, p), tag) == 0 ? entry : NULL;
}

static const entry_t *set_match(apr_hash_t *set, const char *name,
                                const apr_array_header_t *languages, apr_pool_t *p)
{
    for (int i = 0; languages != NULL && i < languages->nelts; i++) {
        char *tag = tag_lower(APR_ARRAY_IDX(languages, i, const char *), p);

        if (!is_tag(tag, strlen(tag))) {
            continue;
        }
        do {
            const entry_t *entry = set_find(set, name, tag, p);

            if (entry != NULL) {
                return entry;
            }
        } while (tag_shorten(tag));
    }
    return NULL;
}

static const mdl_template_t *entry_result(const entry_t *entry, const char **language)
{
    *language = entry != NULL ? entry->language : "";
    return entry != NULL ? entry->template : NULL;
}

const mdl_template_t *mdl_templates_match(const mdl_templates_t *templates, const char *name,
                                          apr_int64_t shop_id, const apr_array_header_t *languages,
                                          const char **language, apr_pool_t *p)
{
    return entry_result(set_match(templates_set_for(templates, shop_id, p), name, languages, p),
                        language);
}

const mdl_template_t *mdl_templates_get(const mdl_templates_t *templates, const char *name,
                                        apr_int64_t shop_id, const apr_array_header_t *languages,
                                        const char **language, apr_pool_t *p)
{
    apr_hash_t *set = templates_set_for(templates, shop_id, p);
    const entry_t *entry = set_match(set, name, languages, p);

    return entry_result(entry != NULL ? entry : apr_hash_get(set, name, APR_HASH_KEY_STRING),
                        language);
}

apr_array_header_t *mdl_templates_languages(const mdl_templates_t *templates, const char *name,
                                            apr_int64_t shop_id, apr_pool_t *p)
{
    apr_array_header_t *languages = apr_array_make(p, 4, sizeof(const char *));

    for (apr_hash_index_t *at = apr_hash_first(p, templates_set_for(templates, shop_id, p));
         at != NULL; at = apr_hash_next(at)) {
        const entry_t *entry = apr_hash_this_val(at);

        if (strcmp(entry->name, name) == 0 && *entry->language != '\0') {
            APR_ARRAY_PUSH(languages, const char *) = entry->language;
        }
    }
    qsort(languages->elts, (size_t)languages->nelts, sizeof(const char *), by_name);
    return languages;
}
