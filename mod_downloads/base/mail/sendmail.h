/*
 * The transport "sendmail" of base/mail/mailer.h, whose contract holds here too: a local program
 * gets the message.
 */
#ifndef MDL_BASE_MAIL_SENDMAIL_H
#define MDL_BASE_MAIL_SENDMAIL_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

/**
 * Runs `program -i -f from -- to` without a shell, the message with LF line ends as its standard
 * input.  The exit code decides by sysexits(3): 0 is SENT; EX_DATAERR, EX_NOUSER, EX_NOHOST and
 * EX_UNAVAILABLE are FAILED; any other code, and a program that can't be run, is LATER.  A program
 * is killed after 10 minutes: UNKNOWN, because it had the whole message.  *detail says why a
 * message was not sent.  from and to are valid addresses.
 */
mdl_mail_outcome_t mdl_sendmail_send(const char *program, const char *from, const char *to,
                                     const char *message, apr_size_t length, const char **detail,
                                     apr_pool_t *p);

/** Whether program can be run; if not, APR_EGENERAL and *detail. */
apr_status_t mdl_sendmail_check(const char *program, const char **detail, apr_pool_t *p);

#endif
