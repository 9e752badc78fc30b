#include "upload/upload_form.h"

#include <string.h>

#include <apr_strings.h>

#include "api/upload_bytes.h"
#include "base/http/media_type.h"
#include "base/text/filename.h"
#include "base/text/multipart.h"
#include "base/text/utf8.h"
#include "child_storage.h"
#include "core/entity_ref.h"
#include "core/shop/member.h"
#include "core/write.h"
#include "request_body.h"
#include "upload/upload_body.h"

#define FIELDS_MAX 4    /* before the file */
#define FIELD_MAX  1024 /* bytes */

typedef struct {
    mdl_request_t *request;
    const mdl_upload_t *upload;
    mdl_multipart_t *parts;
    int fields;
    apr_size_t length; /* of the field that is read */
    int is_title;      /* whether that is the title */
    int is_writing;    /* whether the file has begun */
    char title[FIELD_MAX + 1];
    mdl_upload_description_t description;
    mdl_upload_write_t write;
    mdl_upload_complete_t complete;
    mdl_audit_t audit;
} form_t;

static apr_status_t form_refuse(const form_t *form, const char *code, const char *message)
{
    return mdl_problem_set(&form->request->problem, 400, code, message);
}

static apr_status_t form_faulty(const form_t *form)
{
    return form_refuse(form, "upload_form_faulty",
                       "The form has one file, and before it up to four fields of 1 KB.");
}

/* --- the parts --- */

static apr_status_t form_check_title(form_t *form)
{
    const char *title = mdl_utf8_valid(form->title)
                            ? mdl_utf8_trimmed(form->title, form->request->r->pool)
                            : "\n";

    form->description.title = *title != '\0' ? title : form->description.filename;
    return mdl_utf8_is_text(form->description.title, MDL_NAME_MAX)
               ? APR_SUCCESS
               : form_refuse(form, "upload_form_title",
                             "A title has up to 255 characters, in one line.");
}

/* Of the browser's guess nothing is kept that says nothing. */
static const char *form_content_type(const char *type)
{
    return type != NULL && mdl_media_type_valid(type) &&
                   !mdl_media_type_is(type, "application/octet-stream")
               ? type
               : NULL;
}

static apr_status_t form_begin_file(form_t *form, const mdl_multipart_part_t *part)
{
    request_rec *r = form->request->r;
    const char *name = mdl_filename_of_disposition(part->disposition, r->pool);
    apr_status_t rv;

    if (name != NULL && strlen(name) > MDL_FILENAME_MAX) {
        return form_refuse(form, "upload_form_name",
                           "The file's name is too long: shorten it to 63 characters.");
    }
    if (name == NULL || !mdl_asset_filename_valid(name)) {
        return form_refuse(form, "upload_form_file", "Choose a file that has a name.");
    }
    form->description.filename = name;
    form->description.content_type = form_content_type(part->content_type);
    form->write.length = mdl_multipart_last_length(form->parts, mdl_request_body_length(r));
    if ((rv = form_check_title(form)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_upload_bytes_begin(&form->write, form->request);
    form->is_writing = rv == APR_SUCCESS;
    return rv;
}

static apr_status_t form_take_part(void *baton, const mdl_multipart_part_t *part)
{
    form_t *form = baton;

    if (form->is_writing) {
        return form_faulty(form);
    }
    if (strcmp(part->name, "file") == 0) {
        return form_begin_file(form, part);
    }
    form->length = 0;
    form->is_title = strcmp(part->name, "title") == 0;
    return form->fields++ < FIELDS_MAX ? APR_SUCCESS : form_faulty(form);
}

static apr_status_t form_take_bytes(void *baton, const char *bytes, apr_size_t length)
{
    form_t *form = baton;

    if (form->is_writing) {
        return mdl_upload_write_append(&form->write, bytes, length);
    }
    if (length > FIELD_MAX - form->length) {
        return form_faulty(form);
    }
    if (form->is_title) {
        memcpy(form->title + form->length, bytes, length);
        form->title[form->length + length] = '\0';
    }
    form->length += length;
    return APR_SUCCESS;
}

static apr_status_t form_read(void *baton, const char *bytes, apr_size_t length)
{
    form_t *form = baton;
    apr_status_t rv = mdl_multipart_read(form->parts, bytes, length);

    return rv == APR_EINVAL ? form_faulty(form) : rv;
}

static apr_status_t form_receive(form_t *form)
{
    const mdl_upload_sink_t sink = {.take = form_read, .baton = form};
    apr_status_t rv = mdl_upload_body_receive(form->request, form->upload->shop_id, &sink);

    if (rv == APR_SUCCESS && (!form->is_writing || !mdl_multipart_is_over(form->parts))) {
        rv = form_faulty(form);
    }
    if (!form->is_writing) {
        return rv;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_bytes_end(&form->write);
    } else {
        mdl_upload_bytes_cut(&form->write);
    }
    return rv;
}

/* --- the upload --- */

/* The member may have lost the role since the form was made. */
static apr_status_t form_check_role(mdl_db_t *db, const form_t *form, apr_pool_t *p)
{
    mdl_role_t role = MDL_ROLE_READ_ONLY;
    apr_status_t rv = mdl_member_role(db, form->upload->begun_by, form->upload->shop_id, &role, p);

    return rv == APR_ENOENT || (rv == APR_SUCCESS && role < MDL_ROLE_STAFF)
               ? mdl_problem_set(&form->request->problem, 403, "forbidden",
                                 "Who began the upload may not upload files any more.")
               : rv;
}

static apr_status_t form_complete_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    form_t *form = arg;
    apr_status_t rv = form_check_role(db, form, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_upload_describe(db, form->upload->id, &form->description, p);
    }
    return rv == APR_SUCCESS ? mdl_upload_complete(db, p, &form->complete) : rv;
}

MDL_EFFECT(mdl_write, mdl_write_t *)

static apr_status_t form_complete(form_t *form)
{
    const mdl_settings_t *settings = form->request->service->settings;
    const mdl_upload_t *upload = form->upload;
    mdl_write_t write = {.effect = form_complete_effect,
                         .arg = form,
                         .audit = &form->audit,
                         .problem = &form->request->problem};
    apr_status_t rv;

    form->complete = (mdl_upload_complete_t){.id = upload->id,
                                             .shop_id = upload->shop_id,
                                             .asset_id = upload->replaces,
                                             .storage = mdl_child_storage(),
                                             .quota = settings->storage_quota,
                                             .max_attempts = settings->ingest_max_attempts,
                                             .problem = &form->request->problem};
    form->audit = (mdl_audit_t){.shop_id = upload->shop_id,
                                .noun = "upload",
                                .noun_id = upload->id,
                                .action = "completed",
                                .via = MDL_VIA_SETTINGS,
                                .user = upload->begun_by,
                                .detail = form->description.title};
    rv = mdl_upload_bytes_run(form->request, mdl_db_write, mdl_write_effect, &write);
    if (rv == APR_SUCCESS) {
        mdl_service_wake(form->request->service, write.due);
    }
    return rv;
}

MDL_EFFECT(mdl_upload_find_live, mdl_upload_get_t *)

/* Finds the upload, and refuses what is no form before its body is read. */
static apr_status_t form_begin(form_t *form, const char *id, const char **page)
{
    const mdl_multipart_sink_t sink = {
        .part = form_take_part, .bytes = form_take_bytes, .baton = form};
    mdl_request_t *request = form->request;
    mdl_upload_get_t get = {.id = id, .problem = &request->problem};
    request_rec *r = request->r;
    apr_status_t rv = mdl_upload_bytes_run(request, mdl_db_read, mdl_upload_find_live_effect, &get);

    if ((form->upload = get.upload) == NULL) {
        return rv;
    }
    if (get.upload->returns_to == NULL) {
        return APR_ENOTIMPL;
    }
    *page = apr_pstrcat(r->pool, get.upload->returns_to, "/", id, NULL);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    form->parts = mdl_multipart_make(apr_table_get(r->headers_in, "Content-Type"), &sink, r->pool);
    return form->parts == NULL || mdl_request_body_length(r) < 0 || mdl_request_body_is_encoded(r)
               ? form_faulty(form)
               : APR_SUCCESS;
}

apr_status_t mdl_upload_form_take(mdl_request_t *request, const char *id, const char **page)
{
    form_t *form = apr_pcalloc(request->r->pool, sizeof *form);
    apr_status_t rv;

    *page = NULL;
    form->request = request;
    if ((rv = form_begin(form, id, page)) != APR_SUCCESS) {
        return rv;
    }
    mdl_upload_bytes_prepare(&form->write, request, id);
    form->write.whole = form->write.is_form = 1;
    rv = form_receive(form);
    if (rv != APR_SUCCESS) {
        return mdl_upload_bytes_failed(&form->write, request, rv);
    }
    return form_complete(form);
}
