/*
 * Reading a message that came back: whom it was sent to, and whether it reports that a message of
 * ours could not be delivered.  Its sender may be hostile: nothing in it is trusted, no more is
 * kept than what is described here, and the time taken is proportional to the length.
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
 * Reads a message, with CRLF or LF line ends, with or without an mbox's From line.  The results are
 * allocated from p.
 *
 * A delivery status notification (RFC 3464, RFC 6533) reports a failure when one of its recipients
 * has "Action: failed", whatever the status: an MTA that gives up after days gives 4.x.x there.
 * Where the action is missing, status 5.x.x is a failure.  "delayed", "delivered", "relayed" and
 * "expanded" are none.
 *
 * A message without a delivery status reports a failure when a line, before the message that it
 * returns begins, has the words by which the usual servers say so, and it comes from a mail server
 * (MAILER-DAEMON, postmaster, X-Failed-Recipients) or from the null sender and is no automatic
 * reply (RFC 3834).  Without those words it takes the null sender, no automatic reply, no mention
 * of a delay, and a line with 5.x.x or 55x.  Parts in base64 and quoted-printable are decoded.
 */
void mdl_bounce_report_read(mdl_bounce_report_t *report, const char *message, apr_size_t length,
                            apr_pool_t *p);

#endif
