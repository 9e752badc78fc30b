/*
 * A letter: the subject, text and HTML of an email, made by three templates from the same data.
 */
#ifndef MDL_BASE_TEXT_LETTER_H
#define MDL_BASE_TEXT_LETTER_H

#include "base/text/json.h"
#include "base/text/templates.h"
#include "base/text/text_buffer.h"

typedef struct {
    const char *template; /* "email": email.subject, email.txt and email.html */
    apr_int64_t shop_id;
    const char *locale; /* the reader's, or NULL */
    const char *other;  /* the language for readers of none that there is; NULL: the templates' */
    const mdl_json_t *data;
} mdl_letter_source_t;

typedef struct {
    const mdl_letter_source_t *source;
    const mdl_templates_t *templates;
    const mdl_template_t *subject, *text, *html;
    const char *language; /* of html */
    apr_pool_t *p;
} mdl_letter_t;

/** Chooses the templates by the reader's language.  APR_ENOENT: one of them can't be read.  The
    letter lives as long as the source, the templates and p. */
apr_status_t mdl_letter_choose(mdl_letter_t *letter, const mdl_templates_t *templates,
                               const mdl_letter_source_t *source, apr_pool_t *p);

const char *mdl_letter_subject(const mdl_letter_t *letter);

/** The subject within the template test.subject, which gets it as "subject".  NULL: that template
    can't be read. */
const char *mdl_letter_subject_of_test(const mdl_letter_t *letter);

/** These write the letter (mdl_letter_t) as text and as HTML. */
void mdl_letter_write_text(const void *letter, mdl_text_buffer_t *out);
void mdl_letter_write_html(const void *letter, mdl_text_buffer_t *out);

#endif
