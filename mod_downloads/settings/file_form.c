#include "settings/file_form.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/multipart.h"
#include "request_body.h"

typedef struct {
    mdl_visit_t *visit;
    char *file;        /* as large as the body */
    const char *field; /* whose bytes come; NULL: the file's */
} file_form_t;

static apr_status_t form_part(void *baton, const mdl_multipart_part_t *part)
{
    file_form_t *form = baton;
    mdl_visit_t *visit = form->visit;

    if (strcmp(part->name, "file") == 0) {
        form->field = NULL;
        visit->file = form->file;
        visit->file_length = 0;
        return APR_SUCCESS;
    }
    form->field = apr_pstrdup(visit->r->pool, part->name);
    if (apr_table_get(visit->fields, form->field) != NULL ||
        apr_table_elts(visit->fields)->nelts == MDL_FILE_FORM_FIELDS) {
        return APR_EINVAL;
    }
    apr_table_setn(visit->fields, form->field, "");
    return APR_SUCCESS;
}

static apr_status_t form_bytes(void *baton, const char *bytes, apr_size_t length)
{
    file_form_t *form = baton;
    mdl_visit_t *visit = form->visit;
    apr_pool_t *p = visit->r->pool;
    const char *value;

    if (form->field == NULL) {
        memcpy(form->file + visit->file_length, bytes, length);
        visit->file_length += length;
        return APR_SUCCESS;
    }
    value = apr_pstrcat(p, apr_table_get(visit->fields, form->field),
                        apr_pstrmemdup(p, bytes, length), NULL);
    apr_table_setn(visit->fields, form->field, value);
    return strlen(value) <= MDL_FILE_FORM_FIELD && memchr(bytes, '\0', length) == NULL ? APR_SUCCESS
                                                                                       : APR_EINVAL;
}

static int form_parse(mdl_visit_t *visit, const char *body, apr_size_t length)
{
    apr_pool_t *p = visit->r->pool;
    file_form_t form = {.visit = visit, .file = apr_palloc(p, length + 1)};
    const mdl_multipart_sink_t sink = {.part = form_part, .bytes = form_bytes, .baton = &form};
    mdl_multipart_t *multipart = mdl_multipart_make(
        apr_table_get(visit->r->headers_in, "Content-Type"), &sink, p);

    visit->fields = apr_table_make(p, MDL_FILE_FORM_FIELDS);
    return mdl_multipart_read(multipart, body, length) == APR_SUCCESS &&
                   mdl_multipart_is_over(multipart)
               ? OK
               : HTTP_BAD_REQUEST;
}

int mdl_file_form_read(mdl_visit_t *visit, const char *owner, apr_size_t max_length)
{
    static const mdl_multipart_sink_t none = {0};
    request_rec *r = visit->r;
    apr_off_t announced = mdl_request_body_length(r);
    apr_size_t length;
    char *body;
    apr_status_t rv;

    if (mdl_multipart_make(apr_table_get(r->headers_in, "Content-Type"), &none, r->pool) == NULL ||
        mdl_request_body_is_encoded(r)) {
        return HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    if (announced < 0) {
        return HTTP_LENGTH_REQUIRED;
    }
    if (announced > (apr_off_t)max_length) {
        return HTTP_REQUEST_ENTITY_TOO_LARGE;
    }
    if ((rv = mdl_request_body_read(r, owner, max_length, &body, &length)) != APR_SUCCESS) {
        r->connection->keepalive = AP_CONN_CLOSE;
        return APR_STATUS_IS_TIMEUP(rv) ? HTTP_REQUEST_TIME_OUT : HTTP_BAD_REQUEST;
    }
    return form_parse(visit, body, length);
}
