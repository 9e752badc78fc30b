/*
 * Parsing a returned message: its recipients, and whether it reports that one of our messages could
 * not be delivered.  Its sender may be hostile: nothing in it is trusted, only the results below
 * are kept, and parsing takes time proportional to the length.
 */
#ifndef MDL_BASE_MAIL_BOUNCE_REPORT_H
#define MDL_BASE_MAIL_BOUNCE_REPORT_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct {
    apr_array_header_t *addresses; /* const char *: valid ones of Delivered-To, X-Original-To,
                                      Envelope-To, To and Return-Path, at most 50 */
    const char *reason; /* why the delivery failed, in the mail server's words, in printable ASCII
                           of at most 500 bytes; NULL: no failure is reported */
} mdl_bounce_report_t;

/**
 * Parses a message, with CRLF or LF line ends, with or without an mbox's From line.  The results
 * are allocated from p.
 *
 * A delivery status notification (RFC 3464, RFC 6533) reports a failure when one of its recipients
 * has "Action: failed", whatever the status: an MTA that gives up after days reports 4.x.x.
 * Without an action, status 5.x.x is a failure.  The actions "delayed", "delivered", "relayed" and
 * "expanded" are not.
 *
 * A message without a delivery status reports a failure when a line before the returned message has
 * a phrase that common servers use for it, and the message comes from a mail server (MAILER-DAEMON,
 * postmaster, X-Failed-Recipients), or from the null sender and is no automatic reply (RFC 3834).
 * Without such a phrase it must have the null sender and a line with 5.x.x or 55x, be no automatic
 * reply, and not mention a delay.  Parts in base64 and quoted-printable are decoded.
 */
void mdl_bounce_report_read(mdl_bounce_report_t *report, const char *message, apr_size_t length,
                            apr_pool_t *p);

#endif
