/*
 * A file of words: the texts of templates in one language.
 *
 *   # a comment
 *   all_files = All files
 *   downloads.one = {{total}} download
 *   downloads.other = {{total}} downloads
 *
 * A line is a key, an equals sign with blanks around it, and the text up to the line's end.  The
 * text may have tags for values and other words (base/text/template.h).  The form of a word with
 * forms is chosen by a value: the form named like the value ("0", "pdf"), else the one for a
 * number's plural category in the file's language (CLDR: zero, one, two, few, many), else "other";
 * "none" for a missing or empty value.
 */
#ifndef MDL_BASE_TEXT_WORDS_H
#define MDL_BASE_TEXT_WORDS_H

#include <apr_errno.h>
#include <apr_hash.h>
#include <apr_tables.h>

#include "base/text/template.h"

/** The first word in en.words that a shop's staff alone reads.  A language without it is for
    customers, and staff who read it get English. */
#define MDL_WORDS_OF_STAFF "staff_hello"

typedef struct {
    apr_array_header_t *words; /* mdl_word_t *, in the file's order */
    apr_hash_t *by_key;        /* mdl_word_t * */
} mdl_words_t;

/** Reads a file of at most 1 MiB in the language of a tag ("pt-BR") into p.  On an error *why is a
    sentence with the file and the line or word: APR_EINVAL for a malformed line, a duplicate form,
    a word both with and without forms, and a tag not allowed in words. */
apr_status_t mdl_words_read(mdl_words_t **words, const char *path, const char *tag,
                            const char **why, apr_pool_t *p);

#endif
