/*
 * The job find_email: sends a customer the links of all orders of an address.
 */
#include <apr_strings.h>

#include "base/text/present.h"
#include "core/download/signed_url.h"
#include "core/order/email_data.h"
#include "core/order/find_request.h"
#include "core/shop/shop.h"
#include "worker/handler.h"
#include "worker/message.h"

static void data_add_orders(mdl_json_t *data, const apr_array_header_t *orders,
                            const mdl_service_t *service, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_add_array(data, "orders");

    for (int i = 0; i < orders->nelts && i < MDL_FIND_ORDERS_MAX; i++) {
        const mdl_found_order_t *order = &APR_ARRAY_IDX(orders, i, mdl_found_order_t);
        mdl_json_t *of = mdl_json_add_object(list, NULL);

        mdl_json_add_string(of, "order_id", order->called);
        mdl_present_date(of, "ordered", order->created_at);
        mdl_json_add_string(
            of, "page_url",
            mdl_signed_url_page(service->secret, service->settings->public_url, order->page_id, p));
    }
    mdl_json_add_bool(data, "orders_truncated", orders->nelts > MDL_FIND_ORDERS_MAX);
}

/* The links are made here, so that a stolen database contains none. */
static void letter_fill(mdl_letter_source_t *letter, const mdl_shop_t *shop,
                        const apr_array_header_t *orders, const mdl_service_t *service,
                        apr_pool_t *p)
{
    mdl_order_t *newest = mdl_order_make(p);
    mdl_json_t *data = mdl_json_object(p);
    mdl_json_t *of = mdl_json_add_object(data, "shop");

    newest->brand = shop->brand;
    newest->customer.locale = APR_ARRAY_IDX(orders, 0, mdl_found_order_t).locale;
    mdl_email_choose_language(letter, newest, p);
    mdl_json_add_string(of, "name", shop->name);
    mdl_json_add_string(of, "support_email", shop->reply_to != NULL ? shop->reply_to : shop->email);
    mdl_brand_json(of, &shop->brand, service->settings->public_url, p);
    data_add_orders(data, orders, service, p);
    letter->template = "find";
    letter->data = data;
}

static apr_status_t find_email_build(mdl_task_t *task, const mdl_shop_t *shop, const char *address,
                                     const apr_array_header_t *orders)
{
    const mdl_settings_t *settings = task->service->settings;
    const mdl_job_t *job = task->job;
    apr_pool_t *p = task->pool;
    mdl_message_t *message = task->data = apr_pcalloc(p, sizeof *message);
    mdl_message_source_t source = {
        .letter.shop_id = job->shop_id,
        .mime = {
            .from_name = shop->sender_name != NULL ? shop->sender_name : shop->name,
            .reply_to = shop->reply_to != NULL ? shop->reply_to : shop->email,
            .from = settings->mail_from,
            .to = address,
            .message_id = apr_pstrcat(p, job->id, "@", mdl_settings_public_host(settings, p), NULL),
            .date = job->created_at}};

    letter_fill(&source.letter, shop, orders, task->service, p);
    message->sender = settings->mail_from;
    mdl_template_cache_refresh(task->templates);
    return mdl_message_build(task, message, &source, p);
}

/* Orders may have moved to another address since the email was queued, or come. */
static apr_status_t find_email_prepare(mdl_db_t *db, mdl_task_t *task)
{
    const mdl_job_t *job = task->job;
    apr_pool_t *p = task->pool;
    apr_array_header_t *orders;
    const char *address;
    mdl_shop_t *shop;
    apr_status_t rv = mdl_find_request_of_job(db, job->shop_id, job->id, task->service->secret,
                                              &address, p);

    if (rv == APR_ENOENT) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "gone", "The request is kept no longer.");
    }
    if (rv != APR_SUCCESS ||
        (rv = mdl_find_orders(db, job->shop_id, address, MDL_FIND_ORDERS_MAX + 1, &orders, p)) !=
            APR_SUCCESS ||
        (rv = mdl_shop_find(db, job->shop_id, &shop, p)) != APR_SUCCESS) {
        return rv;
    }
    if (orders->nelts == 0) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "gone",
                                  "No order has the address any more.");
    }
    return find_email_build(task, shop, address, orders);
}

static void find_email_start(mdl_task_t *task)
{
    mdl_message_send(task, task->data);
}

const mdl_job_handler_t mdl_handler_find_email = {
    .prepare = find_email_prepare,
    .start = find_email_start,
};
