#include "core/job_source.h"

#include <string.h>

#include <apr_strings.h>

#include "base/seal.h"

#define PURPOSE "import-query"
#define BATCH   250
#define HIDDEN  "***"

/* Splits a URL into the part before its query, and the query; NULL: none. */
static const char *source_split(const char *url, const char **query, apr_pool_t *p)
{
    const char *mark = strchr(url, '?');

    *query = mark != NULL ? mark + 1 : NULL;
    return mark != NULL ? apr_pstrmemdup(p, url, (apr_size_t)(mark - url)) : url;
}

const char *mdl_source_shown(const char *url, apr_pool_t *p)
{
    const char *query, *rest;

    if (url == NULL) {
        return NULL;
    }
    rest = source_split(url, &query, p);
    return query != NULL ? apr_pstrcat(p, rest, "?" HIDDEN, NULL) : url;
}

int mdl_source_is_whole(const char *shown)
{
    const char *mark = strchr(shown, '?');

    return mark == NULL || strcmp(mark + 1, HIDDEN) != 0;
}

const char *mdl_source_seal(const mdl_secret_t *secret, const char *job_id, const char *url,
                            apr_pool_t *p)
{
    const char *query;
    const char *rest = source_split(url, &query, p);

    return query != NULL
               ? apr_pstrcat(p, rest, "?",
                             mdl_seal(secret, PURPOSE, job_id, query, strlen(query), p), NULL)
               : url;
}

apr_status_t mdl_source_open(const mdl_secret_t *secret, const char *job_id, const char *source_url,
                             const char **url, apr_pool_t *p)
{
    const char *sealed, *query;
    const char *rest = source_split(source_url, &sealed, p);
    apr_size_t length;
    apr_status_t rv;

    *url = source_url;
    if (sealed == NULL) {
        return APR_SUCCESS;
    }
    rv = mdl_unseal(secret, PURPOSE, job_id, sealed, &query, &length, p);
    if (rv == APR_SUCCESS) {
        *url = apr_pstrcat(p, rest, "?", query, NULL);
    }
    return rv;
}

apr_status_t mdl_source_renew(mdl_db_t *db, apr_pool_t *p, mdl_source_renew_t *renew)
{
    mdl_rows_t *rows;
    int n = 0;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(JOB_SOURCES, .after = renew->after, .limit = BATCH));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *id = MDL_TEXT(rows, job_sources, id), *sealed, *renewed;
        const char *rest = source_split(MDL_TEXT(rows, job_sources, source_url), &sealed, p);

        n++;
        apr_cpystrn(renew->after, id, sizeof renew->after);
        if (sealed != NULL &&
            mdl_seal_renew(renew->secret, PURPOSE, id, sealed, &renewed, p) == APR_SUCCESS &&
            renewed != NULL) {
            rv = mdl_db_exec(db, NULL, p,
                             MDL_Q(JOB_SET_SOURCE,
                                   .source_url = apr_pstrcat(p, rest, "?", renewed, NULL), .id = id,
                                   .old_source_url = MDL_TEXT(rows, job_sources, source_url)));
        }
    }
    renew->done = n < BATCH;
    return rv;
}
