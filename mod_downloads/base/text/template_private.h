/*
 * A template as template_parse.c has parsed it and template_render.c renders it.
 */
#ifndef MDL_BASE_TEXT_TEMPLATE_PRIVATE_H
#define MDL_BASE_TEXT_TEMPLATE_PRIVATE_H

#include "base/text/template.h"

typedef enum {
    PIECE_TEXT,
    PIECE_WORD, /* text of a word */
    PIECE_VALUE,
    PIECE_ISOLATED, /* a value within a word with markup */
    PIECE_RAW,
    PIECE_SECTION,
    PIECE_INVERTED,
    PIECE_CHOICE, /* of a form among the following, by a value */
    PIECE_FORM
} piece_type_t;

typedef struct {
    piece_type_t type;
    const char *text; /* the text itself, or the tag's name with a closing NUL */
    apr_size_t length;
    int line;
    int end;                   /* sections, choices, forms: index of the first piece after */
    mdl_plural_rule_t *plural; /* of a choice */
} piece_t;

struct mdl_template_t {
    mdl_template_kind_t kind;
    const char *hashes[MDL_TEMPLATE_ELEMENTS];
    apr_array_header_t *pieces; /* piece_t */
};

#endif
