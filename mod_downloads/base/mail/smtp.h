/*
 * Handing one message to an SMTP server with libcurl (RFC 5321; STARTTLS of RFC 3207, AUTH of RFC
 * 4954).  This is the transport "smtp" of base/mail/mailer.h, whose contract holds here too.
 */
#ifndef MDL_BASE_MAIL_SMTP_H
#define MDL_BASE_MAIL_SMTP_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

typedef struct mdl_smtp_t mdl_smtp_t;

/** Makes a client in p; config, which is kept, has a valid smtp:// or smtps:// URL as its
   transport. Returns APR_ENOMEM without memory. */
apr_status_t mdl_smtp_create(mdl_smtp_t **smtp, const mdl_mail_config_t *config, apr_pool_t *p);

/** Sends a message.  from and to are valid addresses; the message has CRLF line ends only.  *detail
    gets the server's last line, or the reason.  A recipient that is not ASCII takes a server with
    SMTPUTF8 (RFC 6531): another is not told of it, and the message has FAILED. */
mdl_mail_outcome_t mdl_smtp_send(mdl_smtp_t *smtp, const char *from, const char *to,
                                 const char *message, apr_size_t length, const char **detail,
                                 apr_pool_t *p);

/** Ends the connection, if there is one (mdl_mailer_disconnect). */
void mdl_smtp_disconnect(mdl_smtp_t *smtp);

/** Connects, greets, with a user logs in, and names the sender of a message that does not follow;
    APR_EGENERAL and *detail when one of these is refused. */
apr_status_t mdl_smtp_check(mdl_smtp_t *smtp, const char *from, const char **detail, apr_pool_t *p);

#endif
