#include "base/text/fold.h"

#include <stdlib.h>

#include <apr_strings.h>
#include <utf8proc.h>

/* Maps to upper case before folding: full case folding keeps some characters that have an upper
   case, such as U+0131. */
static utf8proc_int32_t to_upper(utf8proc_int32_t c, void *data)
{
    (void)data;
    return utf8proc_toupper(c);
}

/* The key of an ASCII text, as most names are: nothing in it is decomposed or ignored.  NULL: the
   text has other characters. */
static const char *ascii_fold(const char *text, apr_pool_t *p)
{
    char *folded = apr_pstrdup(p, text);

    for (char *at = folded; *at != '\0'; at++) {
        if ((*at & 0x80) != 0) {
            return NULL;
        }
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at;
    }
    return folded;
}

/* Decomposes first, which orders marks: folding turns some marks into characters that could not be
   ordered afterwards. */
const char *mdl_text_fold(const char *name, apr_pool_t *p)
{
    const utf8proc_option_t decompose = UTF8PROC_NULLTERM | UTF8PROC_DECOMPOSE | UTF8PROC_IGNORE;
    utf8proc_uint8_t *decomposed = NULL, *folded = NULL;
    const char *key = ascii_fold(name, p);

    if (key != NULL) {
        return key;
    }
    key = name;
    if (utf8proc_map((const utf8proc_uint8_t *)name, 0, &decomposed, decompose) >= 0 &&
        utf8proc_map_custom(decomposed, 0, &folded, decompose | UTF8PROC_CASEFOLD, to_upper,
                            NULL) >= 0) {
        key = apr_pstrdup(p, (const char *)folded);
    }
    free(decomposed);
    free(folded);
    return key;
}

#define APOSTROPHE 0x2019 /* as word processors write it */

static utf8proc_int32_t to_searched(utf8proc_int32_t c, void *data)
{
    utf8proc_category_t category = utf8proc_category(c);

    (void)data;
    if (c == APOSTROPHE) {
        return '\'';
    }
    return c < 0x80 || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
                   category == UTF8PROC_CATEGORY_CF /* marks of direction, soft hyphens */
               ? utf8proc_toupper(c)
               : ' ';
}

const char *mdl_text_fold_search(const char *text, apr_pool_t *p)
{
    const utf8proc_option_t fold = UTF8PROC_NULLTERM | UTF8PROC_STABLE | UTF8PROC_COMPAT |
                                   UTF8PROC_DECOMPOSE | UTF8PROC_IGNORE | UTF8PROC_CASEFOLD |
                                   UTF8PROC_STRIPMARK;
    utf8proc_uint8_t *folded = NULL;
    const char *searched = "";

    if (utf8proc_map_custom((const utf8proc_uint8_t *)text, 0, &folded, fold, to_searched, NULL) >=
        0) {
        searched = apr_pstrdup(p, (const char *)folded);
    }
    free(folded);
    return searched;
}
