/*
 * Handing one message to a local sendmail program.  This is the transport "sendmail" of
 * base/mail/mailer.h, whose contract holds here too.
 */
#ifndef MDL_BASE_MAIL_SENDMAIL_H
#define MDL_BASE_MAIL_SENDMAIL_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

/**
 * Runs `program -i -f from -- to` without a shell, the message with LF line ends as its standard
 * input.  The exit code decides by sysexits(3): 0 sent; EX_DATAERR, EX_NOUSER, EX_NOHOST and
 * EX_UNAVAILABLE failed; all others, and a program that can't be run, later.  A program that is
 * killed after 10 minutes had the whole message: unknown.  *detail says why it is not sent.  from
 * and to are valid addresses.
 */
mdl_mail_outcome_t mdl_sendmail_send(const char *program, const char *from, const char *to,
                                     const char *message, apr_size_t length, const char **detail,
                                     apr_pool_t *p);

/** Whether program can be run; if not, APR_EGENERAL and *detail. */
apr_status_t mdl_sendmail_check(const char *program, const char **detail, apr_pool_t *p);

#endif
