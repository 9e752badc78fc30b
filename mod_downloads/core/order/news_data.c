#include "core/order/news_data.h"

#include "core/catalog/product.h"
#include "core/download/signed_url.h"

static void data_add_file(mdl_json_t *files, const mdl_news_file_t *file,
                          const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    mdl_json_t *to = mdl_json_add_object(files, NULL);

    mdl_json_add_string(to, "title", file->title);
    mdl_json_add_string(to, "filename", file->filename);
    mdl_json_add_int(to, "version", file->version);
    if (file->note != NULL) {
        mdl_product_json_note(mdl_json_add_object(to, "note"), "lines", file->note, p);
    }
    mdl_json_add_string(to, "order_id", mdl_order_called(file->order));
    mdl_json_add_string(to, "page_url",
                        mdl_signed_url_page(secret, public_url, file->order->page_id, p));
}

mdl_json_t *mdl_news_data(const mdl_news_email_t *email, const char *unsubscribe_url,
                          const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    const mdl_order_t *newest = APR_ARRAY_IDX(email->files, 0, mdl_news_file_t).order;
    mdl_json_t *data = mdl_json_object(p);
    mdl_json_t *to = mdl_json_add_object(data, "shop");

    mdl_json_add_string(to, "name", newest->shop_name);
    mdl_json_add_string(to, "support_email", newest->shop_email);
    mdl_brand_json(to, &newest->brand, public_url, p);
    mdl_json_add_string(mdl_json_add_object(data, "customer"), "first_name",
                        newest->customer.first_name);
    to = mdl_json_add_array(data, "files");
    for (int i = 0; i < email->files->nelts; i++) {
        data_add_file(to, &APR_ARRAY_IDX(email->files, i, mdl_news_file_t), secret, public_url, p);
    }
    mdl_json_add_bool(data, "files_truncated", email->truncated);
    mdl_json_add_string(data, "unsubscribe_url", unsubscribe_url);
    return data;
}
