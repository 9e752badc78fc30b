#include "base/text/words.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/plural.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static apr_status_t words_refuse(const char *path, int line, const char *what, const char **why,
                                 apr_pool_t *p)
{
    *why = apr_psprintf(p, "The words %s are not valid. Line %d: %s.", path, line, what);
    return APR_EINVAL;
}

/* Splits "key.form = text"; 0 for any other line.  form is "" for a word without forms. */
static int line_split(char *line, const char **key, const char **form, const char **text)
{
    char *equals = strstr(line, " = "), *dot;

    if (equals == NULL) {
        return 0;
    }
    *equals = '\0';
    *text = equals + 3;
    *key = line;
    *form = "";
    if ((dot = strchr(line, '.')) != NULL) {
        *dot = '\0';
        *form = dot + 1;
        if (dot[1 + strspn(dot + 1, NAME_BYTES)] != '\0' || dot[1] == '\0') {
            return 0;
        }
    }
    return *line != '\0' && line[strspn(line, NAME_BYTES)] == '\0';
}

static mdl_word_t *words_get(mdl_words_t *words, const char *key, const char *tag, apr_pool_t *p)
{
    mdl_word_t *word = apr_hash_get(words->by_key, key, APR_HASH_KEY_STRING);

    if (word == NULL) {
        word = apr_palloc(p, sizeof *word);
        *word = (mdl_word_t){key, mdl_plural_rule(tag),
                             apr_array_make(p, 1, sizeof(mdl_word_form_t))};
        APR_ARRAY_PUSH(words->words, mdl_word_t *) = word;
        apr_hash_set(words->by_key, key, APR_HASH_KEY_STRING, word);
    }
    return word;
}

/* Whether a form may be added: a word has one without a name, or several with different names. */
static int word_takes(const mdl_word_t *word, const char *form)
{
    for (int i = 0; i < word->forms->nelts; i++) {
        const char *taken = APR_ARRAY_IDX(word->forms, i, mdl_word_form_t).name;

        if (*taken == '\0' || *form == '\0' || strcmp(taken, form) == 0) {
            return 0;
        }
    }
    return 1;
}

apr_status_t mdl_words_read(mdl_words_t **words, const char *path, const char *tag,
                            const char **why, apr_pool_t *p)
{
    mdl_template_file_t file;
    apr_status_t rv = mdl_template_read(&file, path, why, p);
    char *rest = rv == APR_SUCCESS ? apr_pstrdup(p, file.text) : NULL;

    *words = apr_palloc(p, sizeof **words);
    **words = (mdl_words_t){apr_array_make(p, 512, sizeof(mdl_word_t *)), apr_hash_make(p)};
    for (int line = 1; rv == APR_SUCCESS && rest != NULL; line++) {
        char *text = rest;
        const char *key;
        mdl_word_form_t form;
        mdl_word_t *word;

        if ((rest = strchr(text, '\n')) != NULL) {
            *rest++ = '\0';
        }
        text[strcspn(text, "\r")] = '\0';
        if (*text == '\0' || *text == '#') {
            continue;
        }
        if (!line_split(text, &key, &form.name, &form.file.text)) {
            return words_refuse(path, line, "it is no key, \" = \" and a text", why, p);
        }
        word = words_get(*words, key, tag, p);
        if (!word_takes(word, form.name)) {
            return words_refuse(path, line, "this word stands there twice", why, p);
        }
        form.file.path = apr_pstrcat(p, path, " (", key, ")", NULL);
        APR_ARRAY_PUSH(word->forms, mdl_word_form_t) = form;
        rv = mdl_template_check_word(&form.file, line, why, p);
    }
    return rv;
}
