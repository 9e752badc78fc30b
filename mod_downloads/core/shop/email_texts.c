#include "core/shop/email_texts.h"

#include <string.h>

#include <apr_lib.h>

#include "base/text/utf8.h"

#define ENGLISH 2 /* in mdl_email_languages */

const char *const mdl_email_languages[MDL_EMAIL_LANGUAGES + 1] = {"ar", "de", "en", "es",
                                                                  "fr", "ja", NULL};

mdl_email_texts_t mdl_email_texts_read(const char *stored, apr_pool_t *p)
{
    const mdl_json_t *json = mdl_json_stored(stored, p);
    mdl_email_texts_t texts = {0};

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        const mdl_json_t *text = mdl_json_member(json, mdl_email_languages[i]);

        texts.of[i].greeting = mdl_json_string(mdl_json_member(text, "greeting"));
        texts.of[i].closing = mdl_json_string(mdl_json_member(text, "closing"));
    }
    return texts;
}

const char *mdl_email_texts_changed(const char *stored, const mdl_email_texts_t *change,
                                    apr_pool_t *p)
{
    mdl_email_texts_t texts = mdl_email_texts_read(stored, p);
    mdl_json_t *json = mdl_json_object(p);
    int some = 0;

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        const mdl_email_text_t *text = change->of[i].given ? &change->of[i] : &texts.of[i];

        if (text->greeting != NULL || text->closing != NULL) {
            mdl_json_t *to = mdl_json_add_object(json, mdl_email_languages[i]);

            mdl_json_add_string(to, "greeting", text->greeting);
            mdl_json_add_string(to, "closing", text->closing);
            some = 1;
        }
    }
    return some ? mdl_json_text(json, NULL, p) : NULL;
}

static int text_is_valid(const char *text)
{
    return text == NULL || mdl_utf8_is_lines(text, MDL_EMAIL_TEXT_MAX);
}

int mdl_email_texts_valid(const mdl_email_texts_t *change)
{
    int valid = 1;

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        valid = valid && text_is_valid(change->of[i].greeting) &&
                text_is_valid(change->of[i].closing);
    }
    return valid;
}

/* Whether a locale such as "de_AT" is in a language of two letters. */
static int locale_is_in(const char *locale, const char *language)
{
    return locale != NULL && apr_tolower(locale[0]) == language[0] &&
           apr_tolower(locale[1]) == language[1] &&
           (locale[2] == '\0' || locale[2] == '-' || locale[2] == '_');
}

/* The index in mdl_email_languages; -1: none. */
static int locale_language(const char *locale)
{
    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        if (locale_is_in(locale, mdl_email_languages[i])) {
            return i;
        }
    }
    return -1;
}

mdl_email_text_t mdl_email_text_for(const char *stored, const char *locale, const char *other,
                                    apr_pool_t *p)
{
    int language = locale_language(locale) >= 0 ? locale_language(locale) : locale_language(other);

    return mdl_email_texts_read(stored, p).of[language >= 0 ? language : ENGLISH];
}
