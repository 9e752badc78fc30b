/*
 * A mailbox that a mail server delivers to and this program reads: a Maildir, or a file in mbox
 * format (RFC 4155).  A processed message is moved to the Maildir's cur/; an mbox is emptied once
 * all its messages are processed.
 */
#ifndef MDL_BASE_MAIL_MAILBOX_H
#define MDL_BASE_MAIL_MAILBOX_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_mailbox_t mdl_mailbox_t;

/** Whether a location is "maildir:/path" or "mbox:/path"; if not, *why is a sentence in p. */
int mdl_mailbox_valid(const char *location, const char **why, apr_pool_t *p);

/** Makes a mailbox in p for a valid location, which must live as long.  Opens nothing yet. */
mdl_mailbox_t *mdl_mailbox_create(const char *location, apr_pool_t *p);

/** Processes a raw message, cut at 256 KiB.  After an error the message stays in the mailbox.  p is
    destroyed after the call. */
typedef apr_status_t mdl_mailbox_take_fn(void *baton, const char *message, apr_size_t length,
                                         apr_pool_t *p);

/**
 * Passes at most limit messages to take, each with its own pool; *more says whether there may be
 * others.  A mailbox that does not exist yet counts as empty, and so does an mbox while another
 * program holds its lock; it is not locked while take runs.  Each message is passed at least once,
 * and again if the process crashed before it was moved.  Symbolic links are not followed, and only
 * regular files are read.  An error of take is returned at once.  Another error, with a sentence in
 * *why, is returned when the mailbox can't be read or a message can't be moved; the other messages
 * of a Maildir have been passed to take by then.
 */
apr_status_t mdl_mailbox_read(mdl_mailbox_t *box, int limit, mdl_mailbox_take_fn *take, void *baton,
                              int *more, const char **why, apr_pool_t *p);

/** Removes at most limit processed messages older than a time from the Maildir; *more as above. */
void mdl_mailbox_clean(const mdl_mailbox_t *box, apr_time_t before, int limit, int *more,
                       apr_pool_t *p);

/** Checks for `downloadsctl check` that the mailbox exists and can be read and written; if not,
    returns APR_EGENERAL and a sentence in *why. */
apr_status_t mdl_mailbox_check(const mdl_mailbox_t *box, const char **why, apr_pool_t *p);

#endif
