#include "core/form.h"

#include <stddef.h>
#include <string.h>

#define PURPOSE  "settings-form"
#define LIFETIME apr_time_from_sec(12 * 3600)
#define ID_BYTES 16

typedef struct {
    unsigned char id[ID_BYTES];
    apr_int64_t expires_at;
    unsigned char mac[MDL_SHA256_LENGTH];
} form_token_t;

/* The bytes for the MAC; *length gets their number. */
static const char *form_signed(const form_token_t *token, const char *user, apr_size_t *length,
                               apr_pool_t *p)
{
    char *data;

    *length = offsetof(form_token_t, mac) + strlen(user);
    data = apr_palloc(p, *length);
    memcpy(data, token, offsetof(form_token_t, mac));
    memcpy(data + offsetof(form_token_t, mac), user, strlen(user));
    return data;
}

const char *mdl_form_token(const mdl_secret_t *secret, const char *user, apr_time_t now,
                           apr_pool_t *p)
{
    form_token_t token = {.expires_at = now + LIFETIME};
    const char *data;
    apr_size_t length;

    mdl_random(token.id, sizeof token.id);
    data = form_signed(&token, user, &length, p);
    mdl_secret_mac(secret, PURPOSE, data, length, token.mac);
    return mdl_base64url(&token, sizeof token, p);
}

apr_status_t mdl_form_read(mdl_form_t *form, const mdl_secret_t *secret, const char *user,
                           const char *token, apr_time_t now, apr_pool_t *p)
{
    form_token_t read;
    const char *data;
    apr_size_t length;

    if (mdl_base64url_decode(&read, sizeof read, token) != APR_SUCCESS) {
        return APR_EINVAL;
    }
    data = form_signed(&read, user, &length, p);
    if (!mdl_secret_verify(secret, PURPOSE, data, length, read.mac, sizeof read.mac)) {
        return APR_EINVAL;
    }
    form->id = mdl_base64url(read.id, sizeof read.id, p);
    form->expires_at = read.expires_at;
    return read.expires_at > now ? APR_SUCCESS : APR_TIMEUP;
}

apr_status_t mdl_form_use(mdl_db_t *db, const mdl_form_t *form, apr_time_t now, apr_pool_t *p)
{
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(FORM_PRUNE, now));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, &changed, p,
                         MDL_Q(FORM_INSERT, .id = form->id, .expires_at = form->expires_at));
    }
    return rv == APR_SUCCESS && changed == 0 ? APR_EEXIST : rv;
}
