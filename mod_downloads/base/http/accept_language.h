/*
 * Parsing Accept-Language (RFC 9110 section 12.5.4), and checking language tags.
 */
#ifndef MDL_BASE_HTTP_ACCEPT_LANGUAGE_H
#define MDL_BASE_HTTP_ACCEPT_LANGUAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/**
 * The language ranges of a header's value (NULL: none) as const char *, in p, by descending weight,
 * in the header's order for equal weights.  "*", ranges of weight 0, malformed ranges, and all
 * after the first 32 are left out.
 */
apr_array_header_t *mdl_accept_language(const char *value, apr_pool_t *p);

/** Whether a text has the form of a language tag (RFC 5646): subtags of 1 to 8 letters and digits,
    the first of letters only, separated by hyphens or, as in de_DE, underscores. */
int mdl_language_tag_valid(const char *text);

#define MDL_LANGUAGES_MAX 20
#define MDL_LANGUAGE_MAX  35 /* bytes of a tag */
#define MDL_LANGUAGES_RULE                                                                         \
    "Languages are up to 20 tags such as de or pt-BR, with commas between them, each once."

/** A list of 1 to MDL_LANGUAGES_MAX distinct language tags, in p with a comma alone between them;
    NULL for any other text. */
const char *mdl_language_list(const char *text, apr_pool_t *p);

/** Whether a list offers a language, "de" also "de-AT"; NULL offers all. */
int mdl_language_offers(const char *list, const char *language);

/** The languages that a list offers, in p, and then the list's first, for everybody else. */
apr_array_header_t *mdl_language_offered(const char *list, const apr_array_header_t *languages,
                                         apr_pool_t *p);

#endif
