#include "base/text/template_private.h"

#include <string.h>

#include <apr_file_io.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_tables.h>

#include "base/crypto.h"
#include "base/text/html_escape.h"

#define FILE_MAX_SIZE (1024 * 1024)
#define MAX_DEPTH     16

/* Elements that a page's Content-Security-Policy allows by hash. */
static const struct {
    const char *begin, *end;
} elements[] = {
    [MDL_TEMPLATE_STYLE] = {"<style>", "</style>"},
    [MDL_TEMPLATE_SCRIPT] = {"<script>", "</script>"},
};

/* A tag in the text: "{{#name}}". */
typedef struct {
    char sigil; /* '#', '^', '/', '!', '>', '{', '@', or '\0' for a plain value */
    int marked; /* a word with markup */
    const char *name;
    const char *argument; /* of a word, or NULL */
    const char *begin;
    const char *end;
} tag_t;

/* Whether a text belongs to a word. */
typedef enum { NO_WORD, PLAIN_WORD, MARKED_WORD } within_t;

/* The state of parsing a file; outer is the parser of the file that includes it. */
typedef struct parser_t {
    mdl_template_t *t;
    const mdl_template_file_t *file;
    const struct parser_t *outer;
    const char *at;
    const char *end;
    int line;
    int open[MAX_DEPTH]; /* indexes of the sections that are not closed yet */
    int depth;
    within_t within;
    const mdl_template_finder_t *finder;
    const char **why;
    apr_pool_t *p;
} parser_t;

static apr_status_t template_refuse(const parser_t *parser, int line, const char *what)
{
    *parser->why = apr_psprintf(parser->p, "The template %s is not valid. Line %d: %s.",
                                parser->file->path, line, what);
    return APR_EINVAL;
}

static piece_t *add_piece(parser_t *parser, piece_type_t type, const char *text, apr_size_t length)
{
    piece_t *piece = apr_array_push(parser->t->pieces);

    *piece = (piece_t){type, text, length, parser->line, 0, NULL};
    return piece;
}

static int count_lines(const char *begin, const char *end)
{
    int lines = 0;

    for (; begin < end; begin++) {
        lines += *begin == '\n';
    }
    return lines;
}

static const char *template_skip_blanks(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Reads a name and the blanks behind it; NULL if there is none. */
static const char *read_name(const parser_t *parser, const char **at)
{
    const char *name = *at;
    apr_size_t length = 0;

    while (apr_isalnum(name[length]) || name[length] == '_') {
        length++;
    }
    *at = template_skip_blanks(name + length);
    return length > 0 ? apr_pstrmemdup(parser->p, name, length) : NULL;
}

/* Reads the tag whose braces open at begin. */
static apr_status_t read_tag(const parser_t *parser, const char *begin, tag_t *tag)
{
    const char *inner = begin + 2;
    const char *closing = "}}";

    *tag = (tag_t){.begin = begin, .name = ""};
    tag->sigil = *inner != '\0' && strchr("#^/!>{@", *inner) != NULL ? *inner++ : '\0';
    if (tag->sigil == '{') {
        closing = "}}}";
        if (*inner == '@') {
            tag->sigil = *inner++;
            tag->marked = 1;
        }
    }
    tag->end = strstr(inner, closing);
    if (tag->end == NULL) {
        return template_refuse(parser, parser->line, "a tag is not closed");
    }
    if (tag->sigil != '!') {
        inner = template_skip_blanks(inner);
        tag->name = read_name(parser, &inner);
        if (tag->sigil == '@') {
            tag->argument = read_name(parser, &inner);
        }
        if (tag->name == NULL || inner != tag->end) {
            return template_refuse(parser, parser->line,
                                   "a tag has no name of letters, digits and \"_\"");
        }
    }
    tag->end += strlen(closing);
    return APR_SUCCESS;
}

apr_status_t mdl_template_check_word(const mdl_template_file_t *file, int line, const char **why,
                                     apr_pool_t *p)
{
    parser_t parser = {.file = file, .line = line, .why = why, .p = p};
    const char *at = file->text;
    apr_status_t rv;
    tag_t tag;

    while ((at = strstr(at, "{{")) != NULL) {
        if ((rv = read_tag(&parser, at, &tag)) != APR_SUCCESS) {
            return rv;
        }
        if ((tag.sigil != '\0' && tag.sigil != '@') || tag.marked) {
            return template_refuse(&parser, line,
                                   "a word has a tag that is neither {{name}} nor {{@word}}");
        }
        at = tag.end;
    }
    return APR_SUCCESS;
}

static void names_add(apr_array_header_t *names, const char *name)
{
    for (int i = 0; i < names->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(names, i, const char *), name) == 0) {
            return;
        }
    }
    APR_ARRAY_PUSH(names, const char *) = name;
}

apr_array_header_t *mdl_template_names(const mdl_template_file_t *file, apr_pool_t *p)
{
    apr_array_header_t *names = apr_array_make(p, 16, sizeof(const char *));
    const char *why;
    parser_t parser = {.file = file, .why = &why, .p = p};
    const char *at = file->text;
    tag_t tag;

    while ((at = strstr(at, "{{")) != NULL && read_tag(&parser, at, &tag) == APR_SUCCESS) {
        if (tag.sigil == '@') {
            names_add(names, apr_pstrcat(p, "@", tag.name, NULL));
            tag.name = tag.argument;
        }
        if (tag.sigil != '!' && tag.sigil != '>' && tag.name != NULL) {
            names_add(names, tag.name);
        }
        at = tag.end;
    }
    return names;
}

/*
 * Whether only blanks surround the tag on its line.  *before gets the beginning of the line and
 * *after that of the next.
 */
static int stands_alone(const char *text, const tag_t *tag, const char **before, const char **after)
{
    const char *left = tag->begin;
    const char *right = tag->end + strspn(tag->end, " \t");

    while (left > text && (left[-1] == ' ' || left[-1] == '\t')) {
        left--;
    }
    if (left > text && left[-1] != '\n') {
        return 0;
    }
    if (right[0] == '\r' && right[1] == '\n') {
        right++;
    }
    if (*right != '\n' && *right != '\0') {
        return 0;
    }
    *before = left;
    *after = *right == '\n' ? right + 1 : right;
    return 1;
}

static apr_status_t open_section(parser_t *parser, const tag_t *tag)
{
    if (parser->depth == MAX_DEPTH) {
        return template_refuse(parser, parser->line, "sections are nested too deep");
    }
    parser->open[parser->depth++] = parser->t->pieces->nelts;
    add_piece(parser, tag->sigil == '#' ? PIECE_SECTION : PIECE_INVERTED, tag->name,
              strlen(tag->name));
    return APR_SUCCESS;
}

static apr_status_t close_section(parser_t *parser, const tag_t *tag)
{
    piece_t *piece;

    if (parser->depth == 0) {
        return template_refuse(parser, parser->line, "a section is closed that is not open");
    }
    piece = &APR_ARRAY_IDX(parser->t->pieces, parser->open[--parser->depth], piece_t);
    if (strcmp(piece->text, tag->name) != 0) {
        return template_refuse(parser, parser->line,
                               apr_psprintf(parser->p,
                                            "\"%s\" is closed where \"%s\" of line %d is open",
                                            tag->name, piece->text, piece->line));
    }
    piece->end = parser->t->pieces->nelts;
    return APR_SUCCESS;
}

static apr_status_t parse_file(parser_t *parser);

/* Parses a file at the place where outer includes it. */
static apr_status_t add_file(const parser_t *outer, const mdl_template_file_t *file,
                             const char *name, within_t within)
{
    parser_t parser = *outer;
    apr_size_t length;

    for (const parser_t *around = outer; around != NULL; around = around->outer) {
        if (around->file == file) {
            return template_refuse(outer, outer->line,
                                   apr_psprintf(outer->p, "\"%s\" is inside of itself", name));
        }
    }
    length = strlen(file->text);
    length -= length > 0 && file->text[length - 1] == '\n';
    length -= length > 0 && file->text[length - 1] == '\r';
    parser.file = file;
    parser.outer = outer;
    parser.end = file->text + length;
    parser.within = within;
    return parse_file(&parser);
}

static apr_status_t add_partial(const parser_t *outer, const char *name)
{
    const mdl_template_file_t *file = outer->finder->partial(outer->finder->baton, name);

    return file != NULL
               ? add_file(outer, file, name, NO_WORD)
               : template_refuse(outer, outer->line,
                                 apr_psprintf(outer->p, "there is no partial \"%s\"", name));
}

static apr_status_t add_forms(parser_t *parser, const mdl_word_t *word, const tag_t *tag,
                              within_t within)
{
    apr_array_header_t *pieces = parser->t->pieces;
    int choice = pieces->nelts;

    if (tag->argument == NULL) {
        return template_refuse(parser, parser->line,
                               apr_psprintf(parser->p,
                                            "the word \"%s\" has several forms, and the tag names "
                                            "no value to choose by",
                                            tag->name));
    }
    add_piece(parser, PIECE_CHOICE, tag->argument, 0)->plural = word->plural;
    for (int i = 0; i < word->forms->nelts; i++) {
        const mdl_word_form_t *form = &APR_ARRAY_IDX(word->forms, i, mdl_word_form_t);
        int at = pieces->nelts;
        apr_status_t rv;

        add_piece(parser, PIECE_FORM, form->name, 0);
        if ((rv = add_file(parser, &form->file, tag->name, within)) != APR_SUCCESS) {
            return rv;
        }
        APR_ARRAY_IDX(pieces, at, piece_t).end = pieces->nelts;
    }
    APR_ARRAY_IDX(pieces, choice, piece_t).end = pieces->nelts;
    return APR_SUCCESS;
}

static apr_status_t add_word(parser_t *parser, const tag_t *tag)
{
    const mdl_word_t *word = parser->finder->word(parser->finder->baton, tag->name);
    within_t within = tag->marked || parser->within == MARKED_WORD ? MARKED_WORD : PLAIN_WORD;
    const mdl_word_form_t *first;

    if (word == NULL) {
        add_piece(parser, PIECE_WORD, tag->name, strlen(tag->name));
        return APR_SUCCESS;
    }
    first = &APR_ARRAY_IDX(word->forms, 0, mdl_word_form_t);
    return *first->name == '\0' ? add_file(parser, &first->file, tag->name, within)
                                : add_forms(parser, word, tag, within);
}

/* Adds text; a word's is escaped here. */
static void add_text(parser_t *parser, const char *from, const char *to)
{
    if (parser->within != NO_WORD && parser->t->kind == MDL_TEMPLATE_HTML &&
        mdl_html_is_special(from, to)) {
        mdl_text_buffer_t *escaped = mdl_text_buffer_make(parser->p);

        mdl_html_escape(escaped, apr_pstrmemdup(parser->p, from, (apr_size_t)(to - from)));
        from = mdl_text_buffer_text(escaped, NULL);
        to = from + strlen(from);
    }
    if (to > from) {
        add_piece(parser, parser->within != NO_WORD ? PIECE_WORD : PIECE_TEXT, from,
                  (apr_size_t)(to - from));
    }
}

static apr_status_t add_tag(parser_t *parser, const tag_t *tag)
{
    if (parser->within == MARKED_WORD &&
        parser->finder->partial(parser->finder->baton, tag->name) != NULL) {
        return add_partial(parser, tag->name);
    }
    switch (tag->sigil) {
    case '#':
    case '^':
        return open_section(parser, tag);
    case '/':
        return close_section(parser, tag);
    case '!':
        return APR_SUCCESS;
    case '>':
        return add_partial(parser, tag->name);
    case '@':
        return add_word(parser, tag);
    default:
        add_piece(parser,
                  tag->sigil == '{'               ? PIECE_RAW
                  : parser->within == MARKED_WORD ? PIECE_ISOLATED
                                                  : PIECE_VALUE,
                  tag->name, strlen(tag->name));
        return APR_SUCCESS;
    }
}

static apr_status_t parse_pieces(parser_t *parser)
{
    const char *text = parser->file->text;
    const char *begin;

    while ((begin = strstr(parser->at, "{{")) != NULL) {
        const char *before = begin;
        const char *after;
        apr_status_t rv;
        tag_t tag;

        parser->line += count_lines(parser->at, begin);
        rv = read_tag(parser, begin, &tag);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (tag.sigil == '\0' || strchr(">{@", tag.sigil) != NULL ||
            !stands_alone(text, &tag, &before, &after)) {
            before = begin;
            after = tag.end;
        }
        add_text(parser, parser->at, before);
        rv = add_tag(parser, &tag);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        parser->line += count_lines(begin, after);
        parser->at = after;
    }
    add_text(parser, parser->at, parser->end);
    return APR_SUCCESS;
}

static apr_status_t parse_file(parser_t *parser)
{
    apr_status_t rv;

    parser->at = parser->file->text;
    parser->line = 1;
    parser->depth = 0;
    rv = parse_pieces(parser);
    if (rv == APR_SUCCESS && parser->depth > 0) {
        const piece_t *piece = &APR_ARRAY_IDX(parser->t->pieces, parser->open[parser->depth - 1],
                                              piece_t);

        return template_refuse(
            parser, piece->line,
            apr_psprintf(parser->p, "the section \"%s\" is not closed", piece->text));
    }
    return rv;
}

/* --- elements that a Content-Security-Policy allows by hash --- */

/* The text up to the next tag; *from gets the index of that tag's piece. */
static const char *text_run(const parser_t *parser, int *from)
{
    const apr_array_header_t *pieces = parser->t->pieces;
    mdl_text_buffer_t *text = mdl_text_buffer_make(parser->p);

    for (; *from < pieces->nelts; ++*from) {
        const piece_t *piece = &APR_ARRAY_IDX(pieces, *from, piece_t);

        if (piece->type != PIECE_TEXT) {
            break;
        }
        mdl_text_buffer_write(text, piece->text, piece->length);
    }
    return mdl_text_buffer_text(text, NULL);
}

/* False if an element does not end in the text in which it begins. */
static int elements_hash(mdl_template_t *t, mdl_template_element_t kind, const char *html,
                         apr_pool_t *p)
{
    const char *text, *end = html;

    while ((text = strstr(end, elements[kind].begin)) != NULL) {
        unsigned char digest[MDL_SHA256_LENGTH];

        text += strlen(elements[kind].begin);
        if ((end = strstr(text, elements[kind].end)) == NULL) {
            return 0;
        }
        mdl_sha256(text, (apr_size_t)(end - text), digest);
        t->hashes[kind] = apr_pstrcat(p, t->hashes[kind], " 'sha256-",
                                      mdl_base64(digest, sizeof digest, p), "'", NULL);
    }
    return 1;
}

static apr_status_t parse_elements(const parser_t *parser)
{
    mdl_template_t *t = parser->t;

    for (int at = 0; at < t->pieces->nelts; at++) {
        const char *html = text_run(parser, &at);

        for (mdl_template_element_t kind = 0; kind < MDL_TEMPLATE_ELEMENTS; kind++) {
            if (!elements_hash(t, kind, html, parser->p)) {
                int line = at < t->pieces->nelts ? APR_ARRAY_IDX(t->pieces, at, piece_t).line : 1;

                return template_refuse(parser, line,
                                       apr_psprintf(parser->p,
                                                    "a %s element has a tag in it, or no end",
                                                    elements[kind].begin));
            }
        }
    }
    return APR_SUCCESS;
}

const char *mdl_template_hashes(const mdl_template_t *t, mdl_template_element_t kind)
{
    return t->hashes[kind];
}

/* Copies what the template keeps out of the parser's pool. */
static void template_keep(mdl_template_t *t, apr_pool_t *p)
{
    for (mdl_template_element_t kind = 0; kind < MDL_TEMPLATE_ELEMENTS; kind++) {
        t->hashes[kind] = apr_pstrdup(p, t->hashes[kind]);
    }
    t->pieces = apr_array_copy(p, t->pieces);
    for (int i = 0; i < t->pieces->nelts; i++) {
        piece_t *piece = &APR_ARRAY_IDX(t->pieces, i, piece_t);

        if (piece->type != PIECE_TEXT) {
            piece->text = piece->length > 0 ? apr_pstrmemdup(p, piece->text, piece->length)
                                            : apr_pstrdup(p, piece->text);
        }
    }
}

apr_status_t mdl_template_parse(mdl_template_t **t, mdl_template_kind_t kind,
                                const mdl_template_file_t *file,
                                const mdl_template_finder_t *finder, const char **why,
                                apr_pool_t *p)
{
    parser_t parser = {.file = file, .finder = finder, .why = why};
    apr_status_t rv;

    apr_pool_create(&parser.p, p);
    apr_pool_tag(parser.p, "mdl_template_parse");
    parser.end = file->text + strlen(file->text);
    parser.t = *t = apr_pcalloc(p, sizeof *parser.t);
    parser.t->kind = kind;
    parser.t->hashes[MDL_TEMPLATE_STYLE] = parser.t->hashes[MDL_TEMPLATE_SCRIPT] = "";
    parser.t->pieces = apr_array_make(parser.p, 32, sizeof(piece_t));
    rv = parse_file(&parser);
    if (rv == APR_SUCCESS && kind == MDL_TEMPLATE_HTML) {
        rv = parse_elements(&parser);
    }
    if (rv == APR_SUCCESS) {
        template_keep(*t, p);
    } else {
        *why = apr_pstrdup(p, *why);
    }
    apr_pool_destroy(parser.p);
    return rv;
}

static apr_status_t template_read_text(const char *path, const char **text, apr_pool_t *p)
{
    apr_status_t rv;
    apr_file_t *file;
    apr_size_t length;
    char *bytes;

    rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    bytes = apr_palloc(p, FILE_MAX_SIZE + 2);
    rv = apr_file_read_full(file, bytes, FILE_MAX_SIZE + 1, &length);
    apr_file_close(file);
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return rv;
    }
    bytes[length] = '\0';
    if (length > FILE_MAX_SIZE || strlen(bytes) != length) {
        return APR_EINVAL;
    }
    *text = bytes;
    return APR_SUCCESS;
}

apr_status_t mdl_template_read(mdl_template_file_t *file, const char *path, const char **why,
                               apr_pool_t *p)
{
    const char *text;
    apr_pool_t *ptemp;
    apr_status_t rv;
    char error[120];

    rv = apr_pool_create(&ptemp, p);
    if (rv != APR_SUCCESS) {
        *why = apr_psprintf(p, "The template %s can't be read: out of memory.", path);
        return rv;
    }
    apr_pool_tag(ptemp, "mdl_template_read");
    rv = template_read_text(path, &text, ptemp);
    if (rv == APR_EINVAL) {
        *why = apr_psprintf(p, "The template %s is larger than 1 MiB or is not text.", path);
    } else if (rv != APR_SUCCESS) {
        *why = apr_psprintf(p, "The template %s can't be read: %s.", path,
                            apr_strerror(rv, error, sizeof error));
    } else {
        file->path = apr_pstrdup(p, path);
        file->text = apr_pstrdup(p, text);
    }
    apr_pool_destroy(ptemp);
    return rv;
}
