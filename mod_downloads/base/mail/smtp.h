/*
 * The transport "smtp" of base/mail/mailer.h, whose contract holds here too, by libcurl (RFC 5321;
 * STARTTLS of RFC 3207, AUTH of RFC 4954).
 */
#ifndef MDL_BASE_MAIL_SMTP_H
#define MDL_BASE_MAIL_SMTP_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

typedef struct mdl_smtp_t mdl_smtp_t;

/** Makes a client in p; config must live as long and has a valid smtp:// or smtps:// URL as its
    transport.  Returns APR_ENOMEM without memory. */
apr_status_t mdl_smtp_create(mdl_smtp_t **smtp, const mdl_mail_config_t *config, apr_pool_t *p);

/** Sends a message.  from and to are valid addresses; the message has CRLF line ends only.  *detail
    gets the server's last line, or the reason.  A recipient that is not ASCII needs a server with
    SMTPUTF8 (RFC 6531); with any other server the message has FAILED. */
mdl_mail_outcome_t mdl_smtp_send(mdl_smtp_t *smtp, const char *from, const char *to,
                                 const char *message, apr_size_t length, const char **detail,
                                 apr_pool_t *p);

/** Closes the connection, if any (mdl_mailer_disconnect). */
void mdl_smtp_disconnect(mdl_smtp_t *smtp);

/** Connects, sends EHLO, logs in if a user is configured, and sends MAIL FROM without a message
    after it; APR_EGENERAL and *detail if any of these is refused. */
apr_status_t mdl_smtp_check(mdl_smtp_t *smtp, const char *from, const char **detail, apr_pool_t *p);

#endif
