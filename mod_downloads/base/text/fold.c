#include "base/text/fold.h"

#include <stdlib.h>

#include <apr_strings.h>
#include <utf8proc.h>

/* The upper case first: a full case folding leaves alone what has one all the same, as U+0131 has.
 */
static utf8proc_int32_t to_upper(utf8proc_int32_t c, void *data)
{
    (void)data;
    return utf8proc_toupper(c);
}

/* Decomposed first: of marks in another order some would be folded to what is no mark any more. */
const char *mdl_text_fold(const char *name, apr_pool_t *p)
{
    const utf8proc_option_t decompose = UTF8PROC_NULLTERM | UTF8PROC_DECOMPOSE | UTF8PROC_IGNORE;
    utf8proc_uint8_t *decomposed = NULL, *folded = NULL;
    const char *key = name;

    if (utf8proc_map((const utf8proc_uint8_t *)name, 0, &decomposed, decompose) >= 0 &&
        utf8proc_map_custom(decomposed, 0, &folded, decompose | UTF8PROC_CASEFOLD, to_upper,
                            NULL) >= 0) {
        key = apr_pstrdup(p, (const char *)folded);
    }
    free(decomposed);
    free(folded);
    return key;
}
