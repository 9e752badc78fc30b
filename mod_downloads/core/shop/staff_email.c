#include "core/shop/staff_email.h"

#include <string.h>

#include "base/mail/mime.h"
#include "base/ulid.h"
#include "core/job.h"
#include "core/shop/member.h"
#include "core/shop/shop.h"

static apr_status_t email_insert(mdl_db_t *db, apr_int64_t shop_id, const char *to,
                                 const char *template, const mdl_json_t *data, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_STAFF_EMAIL,
                     .lane = MDL_LANE_MAIL,
                     .shop_id = shop_id,
                     .max_attempts = MDL_JOB_MAIL_ATTEMPTS};
    apr_status_t rv = mdl_job_insert(db, &job, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, MDL_Q_STAFF_EMAIL_INSERT, NULL, p,
                             MDL_ARGS(mdl_text(job.id), mdl_text(to), mdl_text(template),
                                      mdl_text(mdl_json_text(data, NULL, p))))
               : rv;
}

apr_status_t mdl_staff_email_queue(mdl_db_t *db, apr_int64_t shop_id, const char *template,
                                   const mdl_json_t *data, apr_pool_t *p)
{
    mdl_member_list_t list = {.shop_id = shop_id};
    int owners = 0;
    mdl_shop_t *shop;
    apr_status_t rv = mdl_member_list(db, p, &list);

    for (int i = 0; rv == APR_SUCCESS && i < list.members->nelts; i++) {
        const mdl_member_t *member = APR_ARRAY_IDX(list.members, i, const mdl_member_t *);

        if (member->role == MDL_ROLE_OWNER && mdl_mime_address_valid(member->user)) {
            owners++;
            rv = email_insert(db, shop_id, member->user, template, data, p);
        }
    }
    if (rv != APR_SUCCESS || owners > 0 ||
        (rv = mdl_shop_find(db, shop_id, &shop, p)) != APR_SUCCESS || shop->email == NULL) {
        return rv;
    }
    return email_insert(db, shop_id, shop->email, template, data, p);
}

apr_status_t mdl_staff_email_find(mdl_db_t *db, const char *job_id, mdl_staff_email_t *email,
                                  apr_pool_t *p)
{
    mdl_rows_t *row;
    const char *data, *why;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_STAFF_EMAIL_OF_JOB, &row, p,
                                        MDL_ARGS(mdl_text(job_id)));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    email->to = mdl_rows_text(row, 0);
    email->template = mdl_rows_text(row, 1);
    data = mdl_rows_text(row, 2);
    return mdl_json_parse(&email->data, data, strlen(data), MDL_JSON_MAX_VALUES, &why, p);
}

apr_status_t mdl_staff_email_delete(mdl_db_t *db, const char *job_id, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_STAFF_EMAIL_DELETE, NULL, p, MDL_ARGS(mdl_text(job_id)));
}
