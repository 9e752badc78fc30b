#include "core/order/bounce.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "core/shop/data_key.h"
#include "core/shop/event.h"
#include "core/shop/notice.h"
#include "core/shop/unsubscribed.h"

#define ID_LENGTH    8
#define MAC_LENGTH   8
#define TOKEN_LENGTH (2 * (ID_LENGTH + MAC_LENGTH))
#define PURPOSE      "mail-bounce"
#define NEWS_PURPOSE "mail-bounce-of-news"

typedef struct {
    unsigned char id[ID_LENGTH];
    unsigned char mac[MAC_LENGTH];
} token_t;

_Static_assert(sizeof(token_t) == ID_LENGTH + MAC_LENGTH, "a token has no gap");

/* What the MAC of a news email's token is of: the id, and the address in lower case. */
static const unsigned char *token_of_news(const token_t *token, const char *to, apr_size_t *length,
                                          apr_pool_t *p)
{
    apr_size_t to_length = strlen(to);
    unsigned char *data = apr_palloc(p, ID_LENGTH + to_length);

    memcpy(data, token->id, ID_LENGTH);
    for (apr_size_t i = 0; i < to_length; i++) {
        data[ID_LENGTH + i] = (unsigned char)apr_tolower(to[i]);
    }
    *length = ID_LENGTH + to_length;
    return data;
}

static token_t token_begin(apr_int64_t id)
{
    token_t token = {.mac = {0}};

    for (int i = 0; i < ID_LENGTH; i++) {
        token.id[i] = (unsigned char)((apr_uint64_t)id >> (8 * (ID_LENGTH - 1 - i)));
    }
    return token;
}

static const char *token_address(token_t *token, const unsigned char mac[MDL_SHA256_LENGTH],
                                 const char *mail_from, apr_pool_t *p)
{
    const char *at = strchr(mail_from, '@');

    memcpy(token->mac, mac, MAC_LENGTH);
    return apr_pstrcat(p, apr_pstrmemdup(p, mail_from, (apr_size_t)(at - mail_from)), "+",
                       mdl_hex((const unsigned char *)token, sizeof *token, p), at, NULL);
}

const char *mdl_bounce_address(const mdl_secret_t *secret, const char *mail_from,
                               apr_int64_t email_id, apr_pool_t *p)
{
    token_t token = token_begin(email_id);
    unsigned char mac[MDL_SHA256_LENGTH];

    mdl_secret_mac(secret, PURPOSE, token.id, ID_LENGTH, mac);
    return token_address(&token, mac, mail_from, p);
}

const char *mdl_bounce_address_of_news(const mdl_secret_t *secret, const char *mail_from,
                                       apr_int64_t order_id, const char *to, apr_pool_t *p)
{
    token_t token = token_begin(order_id);
    unsigned char mac[MDL_SHA256_LENGTH];
    apr_size_t length;
    const unsigned char *data = token_of_news(&token, to, &length, p);

    mdl_secret_mac(secret, NEWS_PURPOSE, data, length, mac);
    return token_address(&token, mac, mail_from, p);
}

/* The value of a hexadecimal digit in either case, -1 for another character. */
static int hex_digit_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, apr_tolower(c)) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* The id in an address that has a token, which may not be authentic; 0: it has none. */
static apr_int64_t token_read(token_t *token, const char *address)
{
    unsigned char *bytes = (unsigned char *)token;
    const char *at = strrchr(address, '@');
    apr_uint64_t id = 0;

    if (at == NULL || at - address <= TOKEN_LENGTH || at[-TOKEN_LENGTH - 1] != '+') {
        return 0;
    }
    for (int i = 0; i < ID_LENGTH + MAC_LENGTH; i++) {
        const char *digits = at - TOKEN_LENGTH + 2 * i;
        int high = hex_digit_value(digits[0]), low = hex_digit_value(digits[1]);

        if (high < 0 || low < 0) {
            return 0;
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    for (int i = 0; i < ID_LENGTH; i++) {
        id = id << 8 | token->id[i];
    }
    return id <= APR_INT64_MAX ? (apr_int64_t)id : 0;
}

apr_int64_t mdl_bounce_email_id(const mdl_secret_t *secret, const char *address)
{
    token_t token;
    apr_int64_t id = token_read(&token, address);

    return id != 0 && mdl_secret_verify(secret, PURPOSE, token.id, ID_LENGTH, token.mac, MAC_LENGTH)
               ? id
               : 0;
}

apr_status_t mdl_bounce_note(mdl_db_t *db, apr_pool_t *p, const mdl_bounce_t *bounce)
{
    apr_time_t now = apr_time_now();
    apr_int64_t noted = 0;
    apr_status_t rv = mdl_db_exec(
        db, &noted, p,
        MDL_Q(EMAIL_BOUNCED, .now = now, .last_error = bounce->reason, .id = bounce->email_id));

    if (rv != APR_SUCCESS || noted == 0) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(ORDER_TOUCH_OF_EMAIL, .now = now, .id = bounce->email_id));
    if (rv == APR_SUCCESS) {
        rv = mdl_event_add_of_email(db, MDL_EVENT_EMAIL_BOUNCED, bounce->email_id, p);
    }
    return rv == APR_SUCCESS ? mdl_notice_add_of_email(db, MDL_NOTICE_BOUNCED, bounce->email_id, p)
                             : rv;
}

/* --- of news --- */

/* APR_ENOENT: the token is not authentic, or not of the address that the order has. */
static apr_status_t news_find(mdl_db_t *db, const mdl_secret_t *secret, const char *address,
                              mdl_unsubscribe_t *unsubscribe, apr_int64_t *order_id, apr_pool_t *p)
{
    mdl_secret_t *data_key;
    token_t token;
    apr_size_t length;
    const unsigned char *data;
    const char *to;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((*order_id = token_read(&token, address)) == 0) {
        return APR_ENOENT;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_ADDRESS, *order_id));
    if (rv != APR_SUCCESS || (to = MDL_TEXT(row, order_address, address)) == NULL) {
        return rv == APR_SUCCESS ? APR_ENOENT : rv;
    }
    data = token_of_news(&token, to, &length, p);
    if (!mdl_secret_verify(secret, NEWS_PURPOSE, data, length, token.mac, MAC_LENGTH)) {
        return APR_ENOENT;
    }
    unsubscribe->shop_id = MDL_INT(row, order_address, shop_id);
    if ((rv = mdl_data_key_find(db, secret, &data_key, p)) == APR_SUCCESS) {
        unsubscribe->address_mac = mdl_unsubscribed_mac(data_key, to, p);
    }
    return rv;
}

apr_status_t mdl_bounce_note_news(mdl_db_t *db, apr_pool_t *p, mdl_bounce_news_t *bounce)
{
    mdl_unsubscribe_t unsubscribe;
    apr_int64_t order_id;
    apr_status_t rv = APR_ENOENT;

    bounce->order_id = 0;
    for (int i = 0; i < bounce->addresses->nelts && rv == APR_ENOENT; i++) {
        rv = news_find(db, bounce->secret, APR_ARRAY_IDX(bounce->addresses, i, const char *),
                       &unsubscribe, &order_id, p);
    }
    if (rv == APR_SUCCESS) {
        bounce->order_id = order_id;
        rv = mdl_unsubscribe(db, p, &unsubscribe);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}
