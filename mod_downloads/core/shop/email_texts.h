/*
 * What a shop adds to its emails to customers in its own words: a greeting and a closing for each
 * of the service's languages, as plain text of several lines.
 */
#ifndef MDL_CORE_SHOP_EMAIL_TEXTS_H
#define MDL_CORE_SHOP_EMAIL_TEXTS_H

#include "base/text/json.h"

#define MDL_EMAIL_LANGUAGES 6
#define MDL_EMAIL_TEXT_MAX  300 /* characters */

/** Their tags; NULL ends them. */
extern const char *const mdl_email_languages[MDL_EMAIL_LANGUAGES + 1];

typedef struct {
    int given; /* of a change: whether it replaces what there was */
    const char *greeting;
    const char *closing; /* NULL: none, like greeting */
} mdl_email_text_t;

/** One for each language, in the order of mdl_email_languages. */
typedef struct {
    mdl_email_text_t of[MDL_EMAIL_LANGUAGES];
} mdl_email_texts_t;

/** Reads what the database has (NULL: nothing). */
mdl_email_texts_t mdl_email_texts_read(const char *stored, apr_pool_t *p);

/** What the database gets after a change; NULL: nothing. */
const char *mdl_email_texts_changed(const char *stored, const mdl_email_texts_t *change,
                                    apr_pool_t *p);

/** Whether all texts of a change are short enough and plain. */
int mdl_email_texts_valid(const mdl_email_texts_t *change);

/** The text for a customer's locale, as emails are chosen: if there is none, for the locale other,
    else English.  Both may be NULL. */
mdl_email_text_t mdl_email_text_for(const char *stored, const char *locale, const char *other,
                                    apr_pool_t *p);

#endif
