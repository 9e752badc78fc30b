/*
 * Sends finished messages by a transport: SMTP (RFC 5321, by libcurl), a local sendmail program, or
 * a Maildir.  A mailer belongs to one thread and keeps its SMTP connection for the next message.
 * The process must ignore SIGPIPE and have called mdl_http_global_init.
 */
#ifndef MDL_BASE_MAIL_MAILER_H
#define MDL_BASE_MAIL_MAILER_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

typedef struct mdl_mailer_t mdl_mailer_t;

/** Checks a transport from the configuration and returns it, in p, with the mail server's name in
    its xn-- form; NULL if it is invalid, and *why is a sentence in p. */
const char *mdl_mailer_transport_of(const char *text, const char **why, apr_pool_t *p);

/**
 * Makes a mailer in p; the configuration's strings must live as long.  It does not connect yet.
 * Returns APR_EINVAL for a transport that is not valid, APR_ENOMEM without memory.
 */
apr_status_t mdl_mailer_create(mdl_mailer_t **mailer, const mdl_mail_config_t *config,
                               apr_pool_t *p);

/**
 * Sends one message from one address to one address.  An address that mdl_mime_address_valid
 * refuses, or a message with a NUL, or a CR or LF outside a CRLF, is FAILED without trying.
 * sendmail and Maildir get LF line ends.
 *
 * *detail gets the server's last line, or why sending failed, in printable ASCII of at most 500
 * bytes, allocated from p; NULL if a program or a Maildir accepted the message.  Blocks for at most
 * 11 minutes (RFC 5321 section 4.5.3.2 gives the server 10 after the final dot).  Once stopped()
 * returns true it ends within about a second (LATER), unless a program or an SMTP server has
 * received some of the message: then it waits on, and a caller that can't wait must treat the
 * outcome as UNKNOWN.
 */
mdl_mail_outcome_t mdl_mailer_send(mdl_mailer_t *mailer, const char *from, const char *to,
                                   const char *message, apr_size_t length, const char **detail,
                                   apr_pool_t *p);

/** Closes any connection without waiting for the server; the next message opens another. */
void mdl_mailer_disconnect(mdl_mailer_t *mailer);

/**
 * Tests the transport without sending, for `downloadsctl check`: SMTP up to MAIL FROM, with login
 * if a user is configured; whether the program can be run; whether a file can be made in the
 * Maildir.  Returns APR_EGENERAL, and the reason in *detail, if that fails.
 */
apr_status_t mdl_mailer_check(mdl_mailer_t *mailer, const char *from, const char **detail,
                              apr_pool_t *p);

#endif
