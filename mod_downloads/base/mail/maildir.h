/*
 * The transport "maildir" of base/mail/mailer.h, whose contract holds here too: a message is
 * written and synced in tmp/, then linked into new/ under a unique name.
 */
#ifndef MDL_BASE_MAIL_MAILDIR_H
#define MDL_BASE_MAIL_MAILDIR_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/mail/transport.h"

/**
 * Delivers a message to the Maildir at folder.  Missing folders are made, accessible only to their
 * owner.  The file begins with Return-Path (RFC 5321 section 4.4) and Delivered-To and has LF line
 * ends.  Delivering a message twice makes two files.  Returns LATER if the file can't be written,
 * UNKNOWN if it may not survive a crash; *detail then says why.  from and to are valid addresses.
 * Files that have been in tmp/ for 36 hours are removed.
 */
mdl_mail_outcome_t mdl_maildir_send(const char *folder, const char *from, const char *to,
                                    const char *message, apr_size_t length, const char **detail,
                                    apr_pool_t *p);

/** Makes the folders, and a file in tmp/, which it removes; APR_EGENERAL and *detail on failure. */
apr_status_t mdl_maildir_check(const char *folder, const char **detail, apr_pool_t *p);

#endif
