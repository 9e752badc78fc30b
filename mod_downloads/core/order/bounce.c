#include "core/order/bounce.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "core/shop/event.h"
#include "core/shop/notice.h"

#define ID_LENGTH    8
#define MAC_LENGTH   8
#define TOKEN_LENGTH (2 * (ID_LENGTH + MAC_LENGTH))
#define PURPOSE      "mail-bounce"

const char *mdl_bounce_address(const mdl_secret_t *secret, const char *mail_from,
                               apr_int64_t email_id, apr_pool_t *p)
{
    unsigned char bytes[ID_LENGTH + MAC_LENGTH];
    unsigned char mac[MDL_SHA256_LENGTH];
    const char *at = strchr(mail_from, '@');

    for (int i = 0; i < ID_LENGTH; i++) {
        bytes[i] = (unsigned char)((apr_uint64_t)email_id >> (8 * (ID_LENGTH - 1 - i)));
    }
    mdl_secret_mac(secret, PURPOSE, bytes, ID_LENGTH, mac);
    memcpy(bytes + ID_LENGTH, mac, MAC_LENGTH);
    return apr_pstrcat(p, apr_pstrmemdup(p, mail_from, (apr_size_t)(at - mail_from)), "+",
                       mdl_hex(bytes, sizeof bytes, p), at, NULL);
}

/* The value of a hexadecimal digit in either case, -1 for another character. */
static int hex_digit_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, apr_tolower(c)) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

apr_int64_t mdl_bounce_email_id(const mdl_secret_t *secret, const char *address)
{
    unsigned char bytes[ID_LENGTH + MAC_LENGTH];
    const char *at = strrchr(address, '@');
    apr_uint64_t id = 0;
    const char *token;

    if (at == NULL || at - address <= TOKEN_LENGTH || at[-TOKEN_LENGTH - 1] != '+') {
        return 0;
    }
    token = at - TOKEN_LENGTH;
    for (int i = 0; i < ID_LENGTH + MAC_LENGTH; i++) {
        int high = hex_digit_value(token[2 * i]), low = hex_digit_value(token[2 * i + 1]);

        if (high < 0 || low < 0) {
            return 0;
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    for (int i = 0; i < ID_LENGTH; i++) {
        id = id << 8 | bytes[i];
    }
    return mdl_secret_verify(secret, PURPOSE, bytes, ID_LENGTH, bytes + ID_LENGTH, MAC_LENGTH)
               ? (apr_int64_t)id
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
