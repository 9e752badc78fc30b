#include "core/identifier.h"

#include <string.h>

#include <apr_strings.h>

int mdl_identifier_is_digits(const char *text)
{
    apr_size_t length = strlen(text);

    return length >= 1 && length <= 20 && strspn(text, "0123456789") == length &&
           (*text != '0' || length == 1);
}

apr_int64_t mdl_identifier_parse(const char *text)
{
    apr_int64_t id = text != NULL && mdl_identifier_is_digits(text) && strlen(text) <= 16
                         ? apr_atoi64(text)
                         : 0;

    return id <= MDL_IDENTIFIER_MAX ? id : 0;
}

/* Splits gid://<platform>/<kind>/<n>; *platform gets the length of the platform's name. */
static const char *gid_number(const char *gid, const char *kind, apr_size_t *platform)
{
    const char *at = gid;

    if (strncmp(at, "gid://", 6) != 0) {
        return NULL;
    }
    at += 6;
    *platform = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (*platform == 0 || *platform > 40 || at[*platform] != '/') {
        return NULL;
    }
    at += *platform + 1;
    if (strncmp(at, kind, strlen(kind)) != 0 || at[strlen(kind)] != '/') {
        return NULL;
    }
    at += strlen(kind) + 1;
    return mdl_identifier_is_digits(at) ? at : NULL;
}

int mdl_identifier_is_product(const char *text)
{
    apr_size_t platform;

    return gid_number(text, "Product", &platform) != NULL;
}

const char *mdl_identifier_variant(const char *text, const char *product, apr_pool_t *p)
{
    apr_size_t platform = 0, own;
    const char *number = text;

    if (!mdl_identifier_is_digits(text)) {
        number = gid_number(text, "ProductVariant", &platform);
        if (number == NULL) {
            return NULL;
        }
    }
    if (product == NULL || gid_number(product, "Product", &own) == NULL) {
        return text; /* the caller reports the product's fault */
    }
    if (number != text && (platform != own || strncmp(text, product, 6 + own) != 0)) {
        return NULL;
    }
    return apr_psprintf(p, "%.*s/ProductVariant/%s", (int)(6 + own), product, number);
}
