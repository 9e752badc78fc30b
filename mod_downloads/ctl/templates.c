#include "ctl/templates.h"

#include <string.h>

#include <apr_file_info.h>
#include <apr_fnmatch.h>
#include <apr_strings.h>

#include "base/text/template.h"
#include "base/text/templates.h"
#include "base/text/words.h"

#define NAMED_MAX 10 /* names in a sentence */

static const char *const known_names[] = {
#include "ctl/template_names.h"
};

/* The suffixes of new files that `make install`, dpkg, ucf and rpm put beside an edited file. */
static const char *const new_suffixes[] = {".new", ".dpkg-new", ".dpkg-dist", ".ucf-dist",
                                           ".rpmnew"};

typedef struct {
    const char *folder;
    const char *const *templates; /* their names, ended by NULL */
    const mdl_words_t *english;
    int is_whole; /* its words are a whole language, not a shop's few */
    apr_array_header_t *problems;
    apr_array_header_t *warnings;
    apr_pool_t *p;
} look_t;

static void sentence_add(apr_array_header_t *to, const char *sentence)
{
    APR_ARRAY_PUSH(to, const char *) = sentence;
}

static int names_have(const apr_array_header_t *names, const char *name)
{
    for (int i = 0; i < names->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(names, i, const char *), name) == 0) {
            return 1;
        }
    }
    return 0;
}

static int name_is_known(const look_t *look, const char *name)
{
    if (*name == '@') {
        return apr_hash_get(look->english->by_key, name + 1, APR_HASH_KEY_STRING) != NULL;
    }
    for (apr_size_t i = 0; i < sizeof known_names / sizeof *known_names; i++) {
        if (strcmp(known_names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* "{{a}}, {{b}}" */
static const char *names_text(const apr_array_header_t *names, apr_pool_t *p)
{
    const char *text = "";

    for (int i = 0; i < names->nelts && i < NAMED_MAX; i++) {
        text = apr_pstrcat(p, text, i > 0 ? ", {{" : "{{", APR_ARRAY_IDX(names, i, const char *),
                           "}}", NULL);
    }
    return names->nelts > NAMED_MAX ? apr_pstrcat(p, text, " and others", NULL) : text;
}

static int is_words(const char *file)
{
    const char *dot = strchr(file, '.');

    return dot != NULL && (strcmp(dot, ".words") == 0 || strncmp(dot, ".words.", 7) == 0);
}

/* The names and words in a file; NULL if it can't be read, which the templates' own check tells. */
static apr_array_header_t *names_read(const look_t *look, const char *file)
{
    const char *path = apr_pstrcat(look->p, look->folder, "/", file, NULL), *why;
    apr_array_header_t *names;
    mdl_template_file_t read;
    mdl_words_t *words;

    if (mdl_template_read(&read, path, &why, look->p) != APR_SUCCESS) {
        return NULL;
    }
    names = mdl_template_names(&read, look->p);
    if (is_words(file) && mdl_words_read(&words, path, "", &why, look->p) == APR_SUCCESS) {
        for (int i = 0; i < words->words->nelts; i++) {
            APR_ARRAY_PUSH(names, const char *) = apr_pstrcat(
                look->p, "@", APR_ARRAY_IDX(words->words, i, const mdl_word_t *)->key, NULL);
        }
    }
    return names;
}

/* Whether the service uses a file: page.html, page.de.html, any partial, any words. */
static int is_used(const look_t *look, const char *file)
{
    const char *first = strchr(file, '.');
    const char *last = strrchr(file, '.');
    const char *general;

    if (first == NULL || first == file) {
        return 0;
    }
    general = apr_pstrcat(look->p, apr_pstrmemdup(look->p, file, (apr_size_t)(first - file)), last,
                          NULL);
    for (const char *const *name = look->templates; *name != NULL; name++) {
        if (strcmp(*name, general) == 0) {
            return 1;
        }
    }
    return strcmp(last, ".mustache") == 0 || strcmp(last, ".words") == 0;
}

/* The names in a file and in the folder's partials, to which a template's names may have moved. */
static apr_array_header_t *names_around(const look_t *look, const char *file)
{
    apr_array_header_t *names = names_read(look, file);
    apr_array_header_t *partials;

    if (names == NULL || apr_match_glob(apr_pstrcat(look->p, look->folder, "/*.mustache", NULL),
                                        &partials, look->p) != APR_SUCCESS) {
        return names;
    }
    for (int i = 0; i < partials->nelts; i++) {
        const apr_array_header_t *more = names_read(look, APR_ARRAY_IDX(partials, i, const char *));

        if (more != NULL) {
            apr_array_cat(names, more);
        }
    }
    return names;
}

static void look_at_missing(const look_t *look, const char *file, const apr_array_header_t *names)
{
    apr_array_header_t *missing = apr_array_make(look->p, 4, sizeof(const char *));

    int for_staff = names_have(names, "@" MDL_WORDS_OF_STAFF);

    for (int i = 0; i < look->english->words->nelts; i++) {
        const char *key = APR_ARRAY_IDX(look->english->words, i, const mdl_word_t *)->key;
        const char *name = apr_pstrcat(look->p, "@", key, NULL);

        if (!for_staff && strcmp(key, MDL_WORDS_OF_STAFF) == 0) {
            break;
        }
        if (!names_have(names, name)) {
            APR_ARRAY_PUSH(missing, const char *) = name;
        }
    }
    if (missing->nelts > 0) {
        sentence_add(look->warnings,
                     apr_psprintf(look->p,
                                  "%s/%s lacks %s, which is shown in English: translate it.",
                                  look->folder, file, names_text(missing, look->p)));
    }
}

static void look_at_used(const look_t *look, const char *file)
{
    const apr_array_header_t *names = names_read(look, file);
    apr_array_header_t *unknown = apr_array_make(look->p, 2, sizeof(const char *));

    for (int i = 0; names != NULL && i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        if (!name_is_known(look, name)) {
            APR_ARRAY_PUSH(unknown, const char *) = name;
        }
    }
    if (unknown->nelts > 0) {
        sentence_add(look->problems,
                     apr_psprintf(look->p,
                                  "%s/%s has %s, which this release does not know and shows "
                                  "nothing for: see docs/templates.md for the names of today.",
                                  look->folder, file, names_text(unknown, look->p)));
    }
    if (names != NULL && look->is_whole && is_words(file)) {
        look_at_missing(look, file, names);
    }
}

/* new is the release's file beside the kept one. */
static void look_at_new(const look_t *look, const char *kept, const char *new)
{
    const apr_array_header_t *has = is_words(kept) ? names_read(look, kept)
                                                   : names_around(look, kept);
    const apr_array_header_t *wants = names_read(look, new);
    apr_array_header_t *lost = apr_array_make(look->p, 4, sizeof(const char *));

    if (has == NULL || wants == NULL) {
        return;
    }
    for (int i = 0; i < wants->nelts; i++) {
        const char *name = APR_ARRAY_IDX(wants, i, const char *);

        if (!names_have(has, name)) {
            APR_ARRAY_PUSH(lost, const char *) = name;
        }
    }
    if (lost->nelts > 0) {
        sentence_add(look->problems,
                     apr_psprintf(look->p,
                                  "%s/%s was kept at an upgrade and lacks %s of %s: take over what "
                                  "you need, and remove that file.",
                                  look->folder, kept, names_text(lost, look->p), new));
    } else {
        sentence_add(look->warnings,
                     apr_psprintf(look->p,
                                  "%s/%s was put beside the file that was kept at an upgrade: "
                                  "compare the two, take over what you need, and remove it.",
                                  look->folder, new));
    }
}

static void look_at_file(const look_t *look, const char *file)
{
    apr_size_t length = strlen(file);

    if (is_used(look, file)) {
        look_at_used(look, file);
        return;
    }
    for (apr_size_t i = 0; i < sizeof new_suffixes / sizeof *new_suffixes; i++) {
        apr_size_t suffix = strlen(new_suffixes[i]);

        if (length > suffix && strcmp(file + length - suffix, new_suffixes[i]) == 0) {
            const char *kept = apr_pstrmemdup(look->p, file, length - suffix);

            if (is_used(look, kept)) {
                look_at_new(look, kept, file);
            }
        }
    }
}

static void look_at_folder(look_t look, const char *folder)
{
    apr_array_header_t *files;

    look.folder = folder;
    if (apr_match_glob(apr_pstrcat(look.p, folder, "/*", NULL), &files, look.p) == APR_SUCCESS) {
        for (int i = 0; i < files->nelts; i++) {
            look_at_file(&look, APR_ARRAY_IDX(files, i, const char *));
        }
    }
}

void mdl_ctl_templates_kept(const mdl_settings_t *settings, apr_array_header_t *problems,
                            apr_array_header_t *warnings, apr_pool_t *p)
{
    look_t look = {.templates = mdl_settings_template_names,
                   .problems = problems,
                   .warnings = warnings,
                   .p = p};
    const char *folder = settings->templates, *why;
    apr_array_header_t *shops;
    mdl_words_t *english;

    if (mdl_words_read(&english, apr_pstrcat(p, folder, "/en.words", NULL), "en", &why, p) !=
        APR_SUCCESS) {
        return; /* the templates' own check has told */
    }
    look.english = english;
    look.is_whole = 1;
    look_at_folder(look, folder);
    look.is_whole = 0;
    if (apr_match_glob(apr_pstrcat(p, folder, "/shop-*", NULL), &shops, p) == APR_SUCCESS) {
        for (int i = 0; i < shops->nelts; i++) {
            look_at_folder(
                look, apr_pstrcat(p, folder, "/", APR_ARRAY_IDX(shops, i, const char *), NULL));
        }
    }
    if (settings->settings_url != NULL) {
        look.templates = mdl_settings_tab_template_names;
        look_at_folder(look, apr_pstrcat(p, folder, "/settings", NULL));
    }
}
