#include <string.h>

#include <apr_strings.h>

#include "base/text/html_escape.h"
#include "base/text/template_private.h"

/* The sections around a piece, innermost first. */
typedef struct scope_t {
    const mdl_json_t *data;
    const mdl_template_list_t *lists; /* further members; or NULL */
    const struct scope_t *outer;
} scope_t;

typedef struct {
    const mdl_template_t *t;
    mdl_text_buffer_t *out;
    apr_pool_t *pool;
} renderer_t;

/* *list gets a list of that name, if there is no value. */
static const mdl_json_t *template_look_up(const scope_t *scope, const char *name,
                                          const mdl_template_list_t **list)
{
    for (*list = NULL; scope != NULL; scope = scope->outer) {
        const mdl_json_t *value = mdl_json_type(scope->data) == MDL_JSON_OBJECT
                                      ? mdl_json_member(scope->data, name)
                                      : NULL;

        if (value != NULL) {
            return value;
        }
        for (const mdl_template_list_t *each = scope->lists; each != NULL; each = each->next) {
            if (strcmp(each->name, name) == 0) {
                *list = each;
                return NULL;
            }
        }
    }
    return NULL;
}

static int is_shown(const mdl_json_t *value)
{
    switch (mdl_json_type(value)) {
    case MDL_JSON_ABSENT:
    case MDL_JSON_NULL:
        return 0;
    case MDL_JSON_BOOL:
        return mdl_json_bool(value);
    case MDL_JSON_STRING:
        return *mdl_json_string(value) != '\0';
    case MDL_JSON_ARRAY:
        return mdl_json_length(value) > 0;
    default:
        return 1;
    }
}

static void put_value(const renderer_t *renderer, const mdl_json_t *value, piece_type_t as)
{
    char number[24];

    switch (mdl_json_type(value)) {
    case MDL_JSON_STRING:
        if (as == PIECE_RAW || renderer->t->kind == MDL_TEMPLATE_TEXT) {
            mdl_text_buffer_put(renderer->out, mdl_json_string(value));
        } else if (as == PIECE_ISOLATED) {
            mdl_text_buffer_put(renderer->out, "<bdi>");
            mdl_html_escape(renderer->out, mdl_json_string(value));
            mdl_text_buffer_put(renderer->out, "</bdi>");
        } else {
            mdl_html_escape(renderer->out, mdl_json_string(value));
        }
        break;
    case MDL_JSON_INT:
        apr_snprintf(number, sizeof number, "%" APR_INT64_T_FMT, mdl_json_int(value));
        mdl_text_buffer_put(renderer->out, number);
        break;
    case MDL_JSON_BOOL:
        mdl_text_buffer_put(renderer->out, mdl_json_bool(value) ? "true" : "false");
        break;
    default:
        break;
    }
}

static void render_range(const renderer_t *renderer, int from, int to, const scope_t *scope);

static void render_list(const renderer_t *renderer, int from, int to,
                        const mdl_template_list_t *list, const scope_t *scope)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, renderer->pool);
    apr_pool_tag(pool, "mdl_template_list");
    for (int i = 0; i < list->length; i++) {
        mdl_json_t *element = mdl_json_object(pool);
        scope_t inner = {.data = element, .outer = scope};

        if (list->lists != NULL) {
            inner.lists = list->lists(list->baton, i, pool);
        }
        list->element(list->baton, i, element, pool);
        render_range(renderer, from, to, &inner);
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
}

static void render_section(const renderer_t *renderer, int from, int to, const mdl_json_t *value,
                           const scope_t *scope)
{
    scope_t inner = {.data = value, .outer = scope};

    if (mdl_json_type(value) != MDL_JSON_ARRAY) {
        render_range(renderer, from, to, &inner);
        return;
    }
    for (apr_size_t i = 0; i < mdl_json_length(value); i++) {
        inner.data = mdl_json_element(value, i);
        render_range(renderer, from, to, &inner);
    }
}

/* The index of the form for a value, or the choice's end if no form fits. */
static int choose_form(const renderer_t *renderer, int at, const mdl_json_t *value)
{
    const piece_t *pieces = (const piece_t *)renderer->t->pieces->elts, *choice = pieces + at;
    const char *exact = "true", *category = "other";
    int fits = choice->end, other = choice->end;
    char number[24];

    if (!is_shown(value)) {
        exact = "none";
    } else if (mdl_json_type(value) == MDL_JSON_STRING) {
        exact = mdl_json_string(value);
    } else if (mdl_json_type(value) == MDL_JSON_INT) {
        apr_snprintf(number, sizeof number, "%" APR_INT64_T_FMT, mdl_json_int(value));
        exact = number;
        category = mdl_plural_names[choice->plural(mdl_json_int(value))];
    }
    for (int i = at + 1; i < choice->end; i = pieces[i].end) {
        const char *name = pieces[i].text;

        if (mdl_json_type(value) == MDL_JSON_OBJECT ? is_shown(mdl_json_member(value, name))
                                                    : strcmp(name, exact) == 0) {
            return i;
        }
        fits = strcmp(name, category) == 0 ? i : fits;
        other = strcmp(name, "other") == 0 ? i : other;
    }
    return fits < choice->end ? fits : other;
}

static void render_range(const renderer_t *renderer, int from, int to, const scope_t *scope)
{
    int i = from;

    while (i < to) {
        const piece_t *piece = &APR_ARRAY_IDX(renderer->t->pieces, i, piece_t);
        const mdl_template_list_t *list = NULL;
        const mdl_json_t *value = piece->type <= PIECE_WORD
                                      ? NULL
                                      : template_look_up(scope, piece->text, &list);
        int form;

        switch (piece->type) {
        case PIECE_TEXT:
        case PIECE_WORD:
            mdl_text_buffer_write(renderer->out, piece->text, piece->length);
            break;
        case PIECE_VALUE:
        case PIECE_ISOLATED:
        case PIECE_RAW:
            put_value(renderer, value, piece->type);
            break;
        case PIECE_SECTION:
            if (list != NULL) {
                render_list(renderer, i + 1, piece->end, list, scope);
            } else if (is_shown(value)) {
                render_section(renderer, i + 1, piece->end, value, scope);
            }
            break;
        case PIECE_INVERTED:
            if (list != NULL ? list->length == 0 : !is_shown(value)) {
                render_range(renderer, i + 1, piece->end, scope);
            }
            break;
        case PIECE_CHOICE:
            form = choose_form(renderer, i, value);
            if (form < piece->end) {
                render_range(renderer, form + 1,
                             APR_ARRAY_IDX(renderer->t->pieces, form, piece_t).end, scope);
            }
            break;
        case PIECE_FORM:
            break;
        }
        i = piece->type >= PIECE_SECTION ? piece->end : i + 1;
    }
}

void mdl_template_write(const mdl_template_t *t, const mdl_json_t *data,
                        const mdl_template_list_t *lists, mdl_text_buffer_t *out, apr_pool_t *p)
{
    scope_t scope = {.data = data, .lists = lists};
    renderer_t renderer = {.t = t, .out = out, .pool = p};

    render_range(&renderer, 0, t->pieces->nelts, &scope);
}

const char *mdl_template_render(const mdl_template_t *t, const mdl_json_t *data, apr_pool_t *p)
{
    mdl_text_buffer_t *out = mdl_text_buffer_make(p);

    mdl_template_write(t, data, NULL, out, p);
    return mdl_text_buffer_text(out, NULL);
}
