#include "core/download/signed_url.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/filename.h"
#include "base/ulid.h"

#define ID_LENGTH   16
#define MAC_LENGTH  16
#define FILE_LENGTH (ID_LENGTH + 3 * 8)
#define LINK_LENGTH (ID_LENGTH + 8)

/* Two numbers, and then a text. */
#define NOTE_LENGTH(text_) (2 * 8 + (text_))
#define TEXT_MAX           255
#define ADDRESS_MAX        254

/* A shop, and the MAC of an address. */
#define UNSUBSCRIBE_LENGTH (8 + MDL_SHA256_LENGTH)

/* The purpose of a token is part of the MAC: changing it invalidates all tokens. */
#define PAGE_PURPOSE        "page-link"
#define LINK_PURPOSE        "visit-link"
#define FILE_PURPOSE        "file-link"
#define ARCHIVE_PURPOSE     "archive-link"
#define UPLOAD_PURPOSE      "upload-link"
#define CONFIRM_PURPOSE     "confirmation-link"
#define UNSUBSCRIBE_PURPOSE "unsubscribe-link"
#define HELP_PURPOSE        "help-answer-link"
#define SESSION_PURPOSE     "session-of-page"

#define UPLOAD_PREFIX "upl_"

static const char *signed_url_sign(const mdl_secret_t *secret, const char *purpose,
                                   unsigned char *bytes, apr_size_t length, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];

    mdl_secret_mac(secret, purpose, bytes, length, mac);
    memcpy(bytes + length, mac, MAC_LENGTH);
    return mdl_base64url(bytes, length + MAC_LENGTH, p);
}

/* Decodes a token into bytes; false unless the MAC behind length bytes is authentic. */
static int signed_url_verify(const mdl_secret_t *secret, const char *purpose, const char *token,
                             unsigned char *bytes, apr_size_t length)
{
    return mdl_base64url_decode(bytes, length + MAC_LENGTH, token) == APR_SUCCESS &&
           mdl_secret_verify(secret, purpose, bytes, length, bytes + length, MAC_LENGTH);
}

const char *mdl_signed_url_new_page_id(apr_pool_t *p)
{
    unsigned char bytes[ID_LENGTH];

    mdl_random(bytes, ID_LENGTH);
    return mdl_base64url(bytes, ID_LENGTH, p);
}

const char *mdl_signed_url_page_token(const mdl_secret_t *secret, const char *page_id,
                                      apr_pool_t *p)
{
    unsigned char bytes[ID_LENGTH + MAC_LENGTH];

    if (mdl_base64url_decode(bytes, ID_LENGTH, page_id) != APR_SUCCESS) {
        return NULL;
    }
    return signed_url_sign(secret, PAGE_PURPOSE, bytes, ID_LENGTH, p);
}

const char *mdl_signed_url_page(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_pool_t *p)
{
    return apr_pstrcat(p, public_url, "/o/", mdl_signed_url_page_token(secret, page_id, p), NULL);
}

const char *mdl_signed_url_page_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p)
{
    unsigned char bytes[ID_LENGTH + MAC_LENGTH];

    return signed_url_verify(secret, PAGE_PURPOSE, token, bytes, ID_LENGTH)
               ? mdl_base64url(bytes, ID_LENGTH, p)
               : NULL;
}

static void put_number(unsigned char *to, apr_int64_t value)
{
    for (int i = 7; i >= 0; i--) {
        to[i] = (unsigned char)(value & 0xff);
        value >>= 8;
    }
}

static apr_int64_t get_number(const unsigned char *from)
{
    apr_uint64_t value = 0;

    for (int i = 0; i < 8; i++) {
        value = value << 8 | from[i];
    }
    return (apr_int64_t)value;
}

const char *mdl_signed_url_link(const mdl_secret_t *secret, const char *public_url,
                                const char *page_id, apr_int64_t link_id, apr_pool_t *p)
{
    unsigned char bytes[LINK_LENGTH + MAC_LENGTH];

    if (mdl_base64url_decode(bytes, ID_LENGTH, page_id) != APR_SUCCESS) {
        return NULL;
    }
    put_number(bytes + ID_LENGTH, link_id);
    return apr_pstrcat(p, public_url, "/l/",
                       signed_url_sign(secret, LINK_PURPOSE, bytes, LINK_LENGTH, p), NULL);
}

apr_status_t mdl_signed_url_link_read(const mdl_secret_t *secret, const char *token,
                                      const char **page_id, apr_int64_t *link_id, apr_pool_t *p)
{
    unsigned char bytes[LINK_LENGTH + MAC_LENGTH];

    if (!signed_url_verify(secret, LINK_PURPOSE, token, bytes, LINK_LENGTH)) {
        return APR_EINVAL;
    }
    *page_id = mdl_base64url(bytes, ID_LENGTH, p);
    *link_id = get_number(bytes + ID_LENGTH);
    return APR_SUCCESS;
}

/* The first half of a session's id is random; the second is a MAC of the first and the page id. */
#define HALF_LENGTH (ID_LENGTH / 2)

/* The bytes for this MAC; *length gets their number. */
static const unsigned char *session_signed(const unsigned char *random, const char *page_id,
                                           apr_size_t *length, apr_pool_t *p)
{
    unsigned char *bytes;

    *length = HALF_LENGTH + strlen(page_id);
    bytes = apr_palloc(p, *length);
    memcpy(bytes, random, HALF_LENGTH);
    memcpy(bytes + HALF_LENGTH, page_id, strlen(page_id));
    return bytes;
}

int mdl_signed_url_session_of(const mdl_secret_t *secret, const char *session, const char *page_id,
                              apr_pool_t *p)
{
    unsigned char bytes[ID_LENGTH];
    const unsigned char *data;
    apr_size_t length;

    if (mdl_base64url_decode(bytes, ID_LENGTH, session) != APR_SUCCESS) {
        return 0;
    }
    data = session_signed(bytes, page_id, &length, p);
    return mdl_secret_verify(secret, SESSION_PURPOSE, data, length, bytes + HALF_LENGTH,
                             HALF_LENGTH);
}

const char *mdl_signed_url_file_token(const mdl_secret_t *secret, mdl_signed_file_t *file,
                                      apr_pool_t *p)
{
    unsigned char bytes[FILE_LENGTH + MAC_LENGTH], mac[MDL_SHA256_LENGTH];
    const unsigned char *data;
    apr_size_t length;

    mdl_random(bytes, HALF_LENGTH);
    data = session_signed(bytes, file->page_id, &length, p);
    mdl_secret_mac(secret, SESSION_PURPOSE, data, length, mac);
    memcpy(bytes + HALF_LENGTH, mac, HALF_LENGTH);
    put_number(bytes + ID_LENGTH, file->assignment_id);
    put_number(bytes + ID_LENGTH + 8, file->asset_id);
    put_number(bytes + ID_LENGTH + 16, apr_time_sec(file->expires_at));
    file->session = mdl_base64url(bytes, ID_LENGTH, p);
    return signed_url_sign(secret, file->asset_id != 0 ? FILE_PURPOSE : ARCHIVE_PURPOSE, bytes,
                           FILE_LENGTH, p);
}

const char *mdl_signed_url_file(const mdl_secret_t *secret, const char *public_url,
                                mdl_signed_file_t *file, const char *filename, apr_pool_t *p)
{
    return apr_pstrcat(p, public_url, file->asset_id != 0 ? "/f/" : "/z/",
                       mdl_signed_url_file_token(secret, file, p),
                       mdl_filename_segment(filename, p), NULL);
}

apr_status_t mdl_signed_url_file_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_file_t *file, apr_pool_t *p)
{
    unsigned char bytes[FILE_LENGTH + MAC_LENGTH];

    if (!signed_url_verify(secret, FILE_PURPOSE, token, bytes, FILE_LENGTH) &&
        !signed_url_verify(secret, ARCHIVE_PURPOSE, token, bytes, FILE_LENGTH)) {
        return APR_EINVAL;
    }
    file->session = mdl_base64url(bytes, ID_LENGTH, p);
    file->assignment_id = get_number(bytes + ID_LENGTH);
    file->asset_id = get_number(bytes + ID_LENGTH + 8);
    file->expires_at = apr_time_from_sec(get_number(bytes + ID_LENGTH + 16));
    return APR_SUCCESS;
}

const char *mdl_signed_url_upload(const mdl_secret_t *secret, const char *upload_url,
                                  const char *id, apr_pool_t *p)
{
    unsigned char bytes[MDL_ULID_LENGTH + MAC_LENGTH];

    memcpy(bytes, id + strlen(UPLOAD_PREFIX), MDL_ULID_LENGTH);
    return apr_pstrcat(p, upload_url, "/",
                       signed_url_sign(secret, UPLOAD_PURPOSE, bytes, MDL_ULID_LENGTH, p), NULL);
}

const char *mdl_signed_url_upload_id(const mdl_secret_t *secret, const char *token, apr_pool_t *p)
{
    unsigned char bytes[MDL_ULID_LENGTH + MAC_LENGTH];

    return signed_url_verify(secret, UPLOAD_PURPOSE, token, bytes, MDL_ULID_LENGTH)
               ? apr_psprintf(p, UPLOAD_PREFIX "%.*s", MDL_ULID_LENGTH, (const char *)bytes)
               : NULL;
}

/* A token of two numbers and a text. */
static const char *note_sign(const mdl_secret_t *secret, const char *purpose, apr_int64_t first,
                             apr_int64_t second, const char *text, apr_pool_t *p)
{
    unsigned char bytes[NOTE_LENGTH(TEXT_MAX) + MAC_LENGTH];
    apr_size_t length = strlen(text);

    put_number(bytes, first);
    put_number(bytes + 8, second);
    memcpy(bytes + NOTE_LENGTH(0), text, length);
    return signed_url_sign(secret, purpose, bytes, NOTE_LENGTH(length), p);
}

static apr_status_t note_read(const mdl_secret_t *secret, const char *purpose, const char *token,
                              apr_int64_t *first, apr_int64_t *second, const char **text,
                              apr_pool_t *p)
{
    unsigned char bytes[NOTE_LENGTH(TEXT_MAX) + MAC_LENGTH];
    apr_size_t whole = strlen(token) * 3 / 4; /* base64 without padding */
    apr_size_t length = whole - NOTE_LENGTH(0) - MAC_LENGTH;

    if (whole <= NOTE_LENGTH(0) + MAC_LENGTH || whole > sizeof bytes ||
        !signed_url_verify(secret, purpose, token, bytes, NOTE_LENGTH(length))) {
        return APR_EINVAL;
    }
    *first = get_number(bytes);
    *second = get_number(bytes + 8);
    *text = apr_pstrmemdup(p, (const char *)bytes + NOTE_LENGTH(0), length);
    return APR_SUCCESS;
}

const char *mdl_signed_url_confirm(const mdl_secret_t *secret, const char *public_url,
                                   const mdl_signed_confirm_t *confirm, apr_pool_t *p)
{
    return strlen(confirm->address) <= ADDRESS_MAX
               ? apr_pstrcat(p, public_url, "/c/",
                             note_sign(secret, CONFIRM_PURPOSE, confirm->shop_id,
                                       apr_time_sec(confirm->expires_at), confirm->address, p),
                             NULL)
               : NULL;
}

apr_status_t mdl_signed_url_confirm_read(const mdl_secret_t *secret, const char *token,
                                         mdl_signed_confirm_t *confirm, apr_pool_t *p)
{
    apr_int64_t expires_at = 0;
    apr_status_t rv = note_read(secret, CONFIRM_PURPOSE, token, &confirm->shop_id, &expires_at,
                                &confirm->address, p);

    confirm->expires_at = apr_time_from_sec(expires_at);
    return rv;
}

const char *mdl_signed_url_help(const mdl_secret_t *secret, const char *public_url,
                                const mdl_signed_help_t *help, apr_pool_t *p)
{
    return strlen(help->user) <= TEXT_MAX
               ? apr_pstrcat(p, public_url, "/h/",
                             note_sign(secret, HELP_PURPOSE, help->shop_id, help->request_id,
                                       help->user, p),
                             NULL)
               : NULL;
}

apr_status_t mdl_signed_url_help_read(const mdl_secret_t *secret, const char *token,
                                      mdl_signed_help_t *help, apr_pool_t *p)
{
    return note_read(secret, HELP_PURPOSE, token, &help->shop_id, &help->request_id, &help->user,
                     p);
}

const char *mdl_signed_url_unsubscribe(const mdl_secret_t *secret, const char *public_url,
                                       const mdl_signed_unsubscribe_t *unsubscribe, apr_pool_t *p)
{
    unsigned char bytes[UNSUBSCRIBE_LENGTH + MAC_LENGTH];

    put_number(bytes, unsubscribe->shop_id);
    if (mdl_hex_decode(bytes + 8, MDL_SHA256_LENGTH, unsubscribe->address_mac) != APR_SUCCESS) {
        return NULL;
    }
    return apr_pstrcat(p, public_url, "/u/",
                       signed_url_sign(secret, UNSUBSCRIBE_PURPOSE, bytes, UNSUBSCRIBE_LENGTH, p),
                       NULL);
}

apr_status_t mdl_signed_url_unsubscribe_read(const mdl_secret_t *secret, const char *token,
                                             mdl_signed_unsubscribe_t *unsubscribe, apr_pool_t *p)
{
    unsigned char bytes[UNSUBSCRIBE_LENGTH + MAC_LENGTH];

    if (!signed_url_verify(secret, UNSUBSCRIBE_PURPOSE, token, bytes, UNSUBSCRIBE_LENGTH)) {
        return APR_EINVAL;
    }
    unsubscribe->shop_id = get_number(bytes);
    unsubscribe->address_mac = mdl_hex(bytes + 8, MDL_SHA256_LENGTH, p);
    return APR_SUCCESS;
}
