/*
 * A mailbox, in which a mail server leaves messages for a program: a Maildir, or a file in mbox
 * format (RFC 4155).  A message that was taken is moved to the Maildir's cur/; an mbox is emptied
 * once all of it was taken.
 */
#ifndef MDL_BASE_MAIL_MAILBOX_H
#define MDL_BASE_MAIL_MAILBOX_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_mailbox_t mdl_mailbox_t;

/** Whether a location is "maildir:/path" or "mbox:/path"; if not, *why is a sentence in p. */
int mdl_mailbox_valid(const char *location, const char **why, apr_pool_t *p);

/** A mailbox in p at a valid location, which is kept.  Nothing is opened yet. */
mdl_mailbox_t *mdl_mailbox_create(const char *location, apr_pool_t *p);

/** Takes a message as it is in the mailbox, cut at 256 KiB.  After an error it stays there.  p is
    destroyed after the call. */
typedef apr_status_t mdl_mailbox_take_fn(void *baton, const char *message, apr_size_t length,
                                         apr_pool_t *p);

/**
 * Hands at most limit messages to take, each with a pool of its own; *more says whether there may
 * be others.  A mailbox that does not exist yet is empty, and so is an mbox while another program
 * holds its lock; it is not locked while take runs.  Each message is handed over at least once: a
 * second time when the process crashed before it was moved.  Symbolic links are not followed, and
 * only regular files are read.  An error of take is returned at once.  Another error, with a
 * sentence in *why, is returned when the mailbox can't be read or a message can't be moved; in a
 * Maildir the other messages have been handed over by then.
 */
apr_status_t mdl_mailbox_read(mdl_mailbox_t *box, int limit, mdl_mailbox_take_fn *take, void *baton,
                              int *more, const char **why, apr_pool_t *p);

/** Removes messages that were taken and that came before a time from the Maildir's cur/, at most
   limit of them; *more as above. */
void mdl_mailbox_clean(const mdl_mailbox_t *box, apr_time_t before, int limit, int *more,
                       apr_pool_t *p);

/** Whether the mailbox exists and can be read and written, for `downloadsctl check`; if not,
    APR_EGENERAL, and a sentence in *why. */
apr_status_t mdl_mailbox_check(const mdl_mailbox_t *box, const char **why, apr_pool_t *p);

#endif
