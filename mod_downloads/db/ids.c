#include <apr_strings.h>

#include "db/db.h"

#define MAX_ID_LENGTH 21 /* of a 64-bit integer with its sign, and a comma */

const char *mdl_db_ids_text(const apr_array_header_t *ids, char open, char close, apr_pool_t *p)
{
    char *text = apr_palloc(p, 3 + (apr_size_t)ids->nelts * MAX_ID_LENGTH);
    char *end = text;

    *end++ = open;
    for (int i = 0; i < ids->nelts; i++) {
        end += apr_snprintf(end, MAX_ID_LENGTH + 1, "%s%" APR_INT64_T_FMT, i > 0 ? "," : "",
                            APR_ARRAY_IDX(ids, i, apr_int64_t));
    }
    *end++ = close;
    *end = '\0';
    return text;
}
