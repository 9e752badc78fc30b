/*
 * A file of words: what templates say in one language.
 *
 *   # a comment
 *   all_files = All files
 *   downloads.one = {{total}} download
 *   downloads.other = {{total}} downloads
 *
 * A line is a key, an equals sign with blanks around it, and the text up to the line's end.  The
 * text may have tags of values and of other words (base/text/template.h).  A word with forms is
 * shown in the form that fits a value: the one named as the value ("0", "pdf"), else by the plural
 * category of a number in the file's language (CLDR: zero, one, two, few, many), else "other";
 * "none" for a value that is missing or empty.
 */
#ifndef MDL_BASE_TEXT_WORDS_H
#define MDL_BASE_TEXT_WORDS_H

#include <apr_errno.h>
#include <apr_hash.h>
#include <apr_tables.h>

#include "base/text/template.h"

typedef struct {
    apr_array_header_t *words; /* mdl_word_t *, in the file's order */
    apr_hash_t *by_key;        /* the same */
} mdl_words_t;

/** Reads a file of at most 1 MiB in the language of a tag ("pt-BR") into p.  On an error why is a
    sentence that names the file and the line or word: APR_EINVAL for a line of another form, a form
    that stands twice, a word both with forms and without, and a tag that no word may have. */
apr_status_t mdl_words_read(mdl_words_t **words, const char *path, const char *tag,
                            const char **why, apr_pool_t *p);

#endif
