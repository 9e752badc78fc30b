#include "base/text/letter.h"

#include <apr_strings.h>

static const mdl_template_t *letter_template(mdl_letter_t *letter, const char *name)
{
    const mdl_letter_source_t *source = letter->source;
    apr_array_header_t *languages = apr_array_make(letter->p, 1, sizeof(const char *));

    if (source->locale != NULL) {
        APR_ARRAY_PUSH(languages, const char *) = source->locale;
    }
    if (source->other != NULL) {
        APR_ARRAY_PUSH(languages, const char *) = source->other;
    }
    return mdl_templates_get(letter->templates, name, source->shop_id, languages, &letter->language,
                             letter->p);
}

apr_status_t mdl_letter_choose(mdl_letter_t *letter, const mdl_templates_t *templates,
                               const mdl_letter_source_t *source, apr_pool_t *p)
{
    const struct {
        const char *suffix;
        const mdl_template_t **chosen;
    } parts[] = {{".subject", &letter->subject}, {".txt", &letter->text}, {".html", &letter->html}};
    *letter = (mdl_letter_t){.source = source, .templates = templates, .p = p};
    for (apr_size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].chosen = letter_template(letter,
                                           apr_pstrcat(p, source->template, parts[i].suffix, NULL));
        if (*parts[i].chosen == NULL) {
            return APR_ENOENT;
        }
    }
    return APR_SUCCESS;
}

static void letter_write(const mdl_letter_t *letter, const mdl_template_t *template,
                         mdl_text_buffer_t *out)
{
    mdl_template_write(template, letter->source->data, NULL, out, letter->p);
}

const char *mdl_letter_subject(const mdl_letter_t *letter)
{
    mdl_text_buffer_t *out = mdl_text_buffer_make(letter->p);

    letter_write(letter, letter->subject, out);
    return mdl_text_buffer_text(out, NULL);
}

const char *mdl_letter_subject_of_test(const mdl_letter_t *letter)
{
    mdl_letter_t same = *letter;
    const mdl_template_t *template = letter_template(&same, "test.subject");
    mdl_text_buffer_t *out = mdl_text_buffer_make(letter->p);
    mdl_json_t *data = mdl_json_object(letter->p);

    if (template == NULL) {
        return NULL;
    }
    mdl_json_add_string(data, "subject", mdl_letter_subject(letter));
    mdl_template_write(template, data, NULL, out, letter->p);
    return mdl_text_buffer_text(out, NULL);
}

void mdl_letter_write_text(const void *letter, mdl_text_buffer_t *out)
{
    letter_write(letter, ((const mdl_letter_t *)letter)->text, out);
}

void mdl_letter_write_html(const void *letter, mdl_text_buffer_t *out)
{
    letter_write(letter, ((const mdl_letter_t *)letter)->html, out);
}
