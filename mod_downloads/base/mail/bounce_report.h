/*
 * A message that came back: whom it was sent to, and whether it says that a message of ours could
 * not be delivered.  Whoever sends it may be hostile: nothing in it is trusted, no more is kept
 * than what is described here, and the time is proportional to the length.
 */
#ifndef MDL_BASE_MAIL_BOUNCE_REPORT_H
#define MDL_BASE_MAIL_BOUNCE_REPORT_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct {
    apr_array_header_t *addresses; /* const char *: valid ones of Delivered-To, X-Original-To,
                                      Envelope-To, To and Return-Path, at most 50 */
    const char *words;             /* why the delivery has failed, as the mail server says it, in
                                      printable ASCII of at most 500 bytes; NULL: it has not */
} mdl_bounce_report_t;

/**
 * Reads a message, with CRLF or LF line ends, with or without an mbox's From line.
 *
 * A delivery status notification (RFC 3464; RFC 6533's as well) tells a failure when it has a
 * recipient with "Action: failed", whatever the status: an MTA that gives up after days says 4.x.x
 * there.  Where an action is missing, status 5.x.x is a failure.  Delayed, delivered, relayed and
 * expanded are none.
 *
 * A message without such a part tells one when it comes from the null sender, is no automatic reply
 * (RFC 3834), and has a line with 5.x.x or 55x before the message that it returns begins.
 */
void mdl_bounce_report_read(mdl_bounce_report_t *dsn, const char *message, apr_size_t length,
                            apr_pool_t *p);

#endif
