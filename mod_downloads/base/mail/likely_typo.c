#include "base/mail/likely_typo.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define LABEL_LEAST 5 /* letters: beside a shorter name are too many others */

static const char *const big_domains[] = {
    "gmail.com",  "googlemail.com", "yahoo.com",  "ymail.com",     "outlook.com", "hotmail.com",
    "live.com",   "msn.com",        "icloud.com", "me.com",        "aol.com",     "mail.com",
    "email.com",  "gmx.de",         "gmx.net",    "gmx.at",        "web.de",      "t-online.de",
    "freenet.de", "posteo.de",      "hotmail.fr", "orange.fr",     "wanadoo.fr",  "laposte.net",
    "hotmail.es", "protonmail.com", "proton.me",  "hotmail.co.uk", "yahoo.co.jp", "comcast.net",
};

#define BIG_DOMAINS (sizeof big_domains / sizeof *big_domains)

static char at(const char *text, apr_size_t i)
{
    return (char)apr_tolower(text[i]);
}

/* Whether a becomes b by one insertion, deletion, replacement or exchange of neighbours. */
static int is_beside(const char *a, const char *b)
{
    apr_size_t a_length = strlen(a), b_length = strlen(b), i = 0;

    while (a[i] != '\0' && at(a, i) == at(b, i)) {
        i++;
    }
    if (a_length == b_length) {
        return a_length > i &&
               (strcasecmp(a + i + 1, b + i + 1) == 0 ||
                (a_length > i + 1 && at(a, i) == at(b, i + 1) && at(a, i + 1) == at(b, i) &&
                 strcasecmp(a + i + 2, b + i + 2) == 0));
    }
    return (a_length + 1 == b_length && strcasecmp(a + i, b + i + 1) == 0) ||
           (a_length == b_length + 1 && strcasecmp(a + i + 1, b + i) == 0);
}

/* The same name may exist below another country's domain; but .com has neighbours like .con. */
static int is_typo_of(const char *domain, const char *big)
{
    apr_size_t label = strcspn(big, ".");

    return label >= LABEL_LEAST && is_beside(domain, big) &&
           (strncasecmp(domain, big, label + 1) != 0 || strcmp(big + label, ".com") == 0);
}

const char *mdl_likely_typo(const char *address, apr_pool_t *p)
{
    const char *sign = strrchr(address, '@'), *meant = NULL;

    if (sign == NULL) {
        return NULL;
    }
    for (apr_size_t i = 0; i < BIG_DOMAINS; i++) {
        if (strcasecmp(sign + 1, big_domains[i]) == 0) {
            return NULL;
        }
        if (meant == NULL && is_typo_of(sign + 1, big_domains[i])) {
            meant = big_domains[i];
        }
    }
    return meant != NULL
               ? apr_pstrcat(p, apr_pstrmemdup(p, address, (apr_size_t)(sign + 1 - address)), meant,
                             NULL)
               : NULL;
}
