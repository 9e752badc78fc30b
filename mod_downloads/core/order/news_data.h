/*
 * What the email about new versions is given (docs/templates.md).
 */
#ifndef MDL_CORE_ORDER_NEWS_DATA_H
#define MDL_CORE_ORDER_NEWS_DATA_H

#include "base/text/json.h"
#include "core/order/news.h"

#define MDL_NEWS_TEMPLATE "news"

/** The data of an email with at least one file. */
mdl_json_t *mdl_news_data(const mdl_news_email_t *email, const char *unsubscribe_url,
                          const mdl_secret_t *secret, const char *public_url, apr_pool_t *p);

#endif
