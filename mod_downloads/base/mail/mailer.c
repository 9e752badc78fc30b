#include "base/mail/mailer.h"

#include <stdlib.h>
#include <string.h>

#include <apr_cstr.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/mail/maildir.h"
#include "base/mail/mime.h"
#include "base/mail/sendmail.h"
#include "base/mail/smtp.h"
#include "base/text/idn.h"

#define DETAIL_MAX 500
#define HOST_MAX   253

static const char sendmail_prefix[] = "sendmail:";
static const char maildir_prefix[] = "maildir:";

struct mdl_mailer_t {
    mdl_mail_config_t config;
    mdl_smtp_t *smtp;    /* or NULL */
    const char *program; /* or NULL */
    const char *folder;  /* or NULL */
};

static int port_valid(const char *port)
{
    apr_size_t length = strspn(port, "0123456789");

    return length > 0 && length <= 5 && port[length] == '\0' && atoi(port) > 0 &&
           atoi(port) <= 65535;
}

/* host[:port]; an IPv6 address stands in brackets. */
static int authority_valid(const char *authority)
{
    apr_size_t length;

    if (*authority == '[') {
        length = strspn(authority + 1, "0123456789abcdefABCDEF:.");
        if (length == 0 || authority[length + 1] != ']') {
            return 0;
        }
        length += 2;
    } else {
        length = strcspn(authority, ":");
        for (apr_size_t i = 0; i < length; i++) {
            if (!apr_isalnum(authority[i]) && authority[i] != '.' && authority[i] != '-') {
                return 0;
            }
        }
    }
    return length > 0 && length <= HOST_MAX &&
           (authority[length] == '\0' ||
            (authority[length] == ':' && port_valid(authority + length + 1)));
}

static int transport_valid(const char *transport, const char **why, apr_pool_t *p)
{
    const char *rest;

    if ((rest = apr_cstr_skip_prefix(transport, "smtp://")) != NULL ||
        (rest = apr_cstr_skip_prefix(transport, "smtps://")) != NULL) {
        if (!authority_valid(rest)) {
            *why = apr_psprintf(p,
                                "\"%s\" is not smtp://host or smtp://host:port; a user, a path or "
                                "a query can't be part of it.",
                                transport);
            return 0;
        }
        return 1;
    }
    if ((rest = apr_cstr_skip_prefix(transport, sendmail_prefix)) != NULL ||
        (rest = apr_cstr_skip_prefix(transport, maildir_prefix)) != NULL) {
        if (*rest != '/') {
            *why = apr_psprintf(p, "\"%s\" needs an absolute path after the colon.", transport);
            return 0;
        }
        return 1;
    }
    *why = apr_psprintf(p,
                        "\"%s\" is no mail transport; known are smtp://host[:port], "
                        "smtps://host[:port], sendmail:/path and maildir:/path.",
                        transport);
    return 0;
}

const char *mdl_mailer_transport_of(const char *text, const char **why, apr_pool_t *p)
{
    const char *host = strncmp(text, "smtp", 4) == 0 ? strstr(text, "://") : NULL;
    const char *port = host != NULL ? strchr(host + 3, ':') : NULL;

    if (host != NULL) {
        const char *name = port != NULL ? apr_pstrmemdup(p, host + 3, (apr_size_t)(port - host - 3))
                                        : host + 3;
        const char *ascii = mdl_idn_ascii(name, p);

        text = ascii == NULL
                   ? text
                   : apr_pstrcat(p, apr_pstrmemdup(p, text, (apr_size_t)(host + 3 - text)), ascii,
                                 port, NULL);
    }
    return transport_valid(text, why, p) ? text : NULL;
}

apr_status_t mdl_mailer_create(mdl_mailer_t **mailer, const mdl_mail_config_t *config,
                               apr_pool_t *p)
{
    mdl_mailer_t *made = apr_pcalloc(p, sizeof *made);
    const char *why;
    apr_status_t rv;

    if (!transport_valid(config->transport, &why, p)) {
        return APR_EINVAL;
    }
    made->config = *config;
    made->program = apr_cstr_skip_prefix(config->transport, sendmail_prefix);
    made->folder = apr_cstr_skip_prefix(config->transport, maildir_prefix);
    if (made->program == NULL && made->folder == NULL) {
        rv = mdl_smtp_create(&made->smtp, &made->config, p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    *mailer = made;
    return APR_SUCCESS;
}

/* Only CRLF may end a line: servers disagree on where a bare CR or LF ends one. */
static int line_ends_valid(const char *message, apr_size_t length)
{
    for (apr_size_t i = 0; i < length; i++) {
        if (message[i] == '\0' || (message[i] == '\n' && (i == 0 || message[i - 1] != '\r')) ||
            (message[i] == '\r' && (i + 1 == length || message[i + 1] != '\n'))) {
            return 0;
        }
    }
    return 1;
}

/* A reason in printable ASCII, cut at 500 bytes. */
static const char *printable_detail(const char *reason, apr_pool_t *p)
{
    char *result = apr_pstrndup(p, reason != NULL ? reason : "No reason was given.", DETAIL_MAX);
    apr_size_t length = strlen(result);

    while (length > 0 && apr_isspace(result[length - 1])) {
        result[--length] = '\0';
    }
    for (char *c = result; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7E) {
            *c = '?';
        }
    }
    return result;
}

mdl_mail_outcome_t mdl_mailer_send(mdl_mailer_t *mailer, const char *from, const char *to,
                                   const char *message, apr_size_t length, const char **detail,
                                   apr_pool_t *p)
{
    mdl_mail_outcome_t outcome;
    const char *reason = NULL;

    *detail = NULL;
    if (!mdl_mime_address_valid(from) || !mdl_mime_address_valid(to)) {
        *detail = apr_psprintf(p, "The %s address is not valid.",
                               mdl_mime_address_valid(from) ? "recipient's" : "sender's");
        return MDL_MAIL_FAILED;
    }
    if (!line_ends_valid(message, length)) {
        *detail = "The message has a NUL, or a CR or LF that is not part of a CRLF.";
        return MDL_MAIL_FAILED;
    }
    if (mailer->program != NULL) {
        outcome = mdl_sendmail_send(mailer->program, from, to, message, length, &reason, p);
    } else if (mailer->folder != NULL) {
        outcome = mdl_maildir_send(mailer->folder, from, to, message, length, &reason, p);
    } else {
        outcome = mdl_smtp_send(mailer->smtp, from, to, message, length, &reason, p);
    }
    if (outcome != MDL_MAIL_SENT || reason != NULL) {
        *detail = printable_detail(reason, p);
    }
    return outcome;
}

void mdl_mailer_disconnect(mdl_mailer_t *mailer)
{
    if (mailer->smtp != NULL) {
        mdl_smtp_disconnect(mailer->smtp);
    }
}

apr_status_t mdl_mailer_check(mdl_mailer_t *mailer, const char *from, const char **detail,
                              apr_pool_t *p)
{
    const char *reason = NULL;
    apr_status_t rv;

    *detail = NULL;
    if (mailer->program != NULL) {
        rv = mdl_sendmail_check(mailer->program, &reason, p);
    } else if (mailer->folder != NULL) {
        rv = mdl_maildir_check(mailer->folder, &reason, p);
    } else {
        rv = mdl_smtp_check(mailer->smtp, from, &reason, p);
    }
    if (rv != APR_SUCCESS) {
        *detail = printable_detail(reason, p);
    }
    return rv;
}
