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

static void form_mac(const form_token_t *token, const mdl_secret_t *secret, const char *user,
                     unsigned char mac[MDL_SHA256_LENGTH], apr_pool_t *p)
{
    apr_size_t length = strlen(user);
    char *data = apr_palloc(p, offsetof(form_token_t, mac) + length);

    memcpy(data, token, offsetof(form_token_t, mac));
    memcpy(data + offsetof(form_token_t, mac), user, length);
    mdl_secret_mac(secret, PURPOSE, data, offsetof(form_token_t, mac) + length, mac);
}

const char *mdl_form_token(const mdl_secret_t *secret, const char *user, apr_time_t now,
                           apr_pool_t *p)
{
    form_token_t token = {.expires_at = now + LIFETIME};

    mdl_random(token.id, sizeof token.id);
    form_mac(&token, secret, user, token.mac, p);
    return mdl_base64url(&token, sizeof token, p);
}

apr_status_t mdl_form_read(mdl_form_t *form, const mdl_secret_t *secret, const char *user,
                           const char *token, apr_time_t now, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];
    form_token_t read;

    if (mdl_base64url_decode(&read, sizeof read, token) != APR_SUCCESS) {
        return APR_EINVAL;
    }
    form_mac(&read, secret, user, mac, p);
    if (!mdl_equal(mac, read.mac, sizeof mac)) {
        return APR_EINVAL;
    }
    form->id = mdl_base64url(read.id, sizeof read.id, p);
    form->expires_at = read.expires_at;
    return read.expires_at > now ? APR_SUCCESS : APR_TIMEUP;
}

apr_status_t mdl_form_use(mdl_db_t *db, const mdl_form_t *form, apr_time_t now, apr_pool_t *p)
{
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(db, MDL_Q_FORM_PRUNE, NULL, p, MDL_ARGS(mdl_int(now)));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, MDL_Q_FORM_INSERT, &changed, p,
                         MDL_ARGS(mdl_text(form->id), mdl_int(form->expires_at)));
    }
    return rv == APR_SUCCESS && changed == 0 ? APR_EEXIST : rv;
}
