/*
 * The place where a mail server leaves messages for a program: a Maildir, or a file in mbox format
 * (RFC 4155).  A message that was taken is moved to the Maildir's cur/; a file is emptied once all
 * of it was taken.
 */
#ifndef MDL_BASE_MAIL_MAILBOX_H
#define MDL_BASE_MAIL_MAILBOX_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_mailbox_t mdl_mailbox_t;

/** Whether a place is "maildir:/path" or "mbox:/path"; if not, *why is a sentence. */
int mdl_mailbox_valid(const char *place, const char **why, apr_pool_t *p);

/** A mailbox of a valid place, in p; nothing is opened yet. */
mdl_mailbox_t *mdl_mailbox_create(const char *place, apr_pool_t *p);

/** Takes a message as it stands in the box, cut at 256 KiB.  An error leaves it there. */
typedef apr_status_t mdl_mailbox_take_fn(void *baton, const char *message, apr_size_t length,
                                         apr_pool_t *p);

/**
 * Hands at most limit messages to take, each with a pool of its own; *more says whether there may
 * be others.  A box that is not there yet is empty, and so is an mbox while another program holds
 * its lock; it is not locked while take runs.  Each message is handed over at least once: again
 * after a crash before it was put away. Links and what is no regular file are not followed. Returns
 * take's error at once; another one, with a sentence in *why, when something in the box can't be
 * read or put away (in a Maildir after the messages that can).
 */
apr_status_t mdl_mailbox_read(mdl_mailbox_t *box, int limit, mdl_mailbox_take_fn *take, void *baton,
                              int *more, const char **why, apr_pool_t *p);

/** Whether the box is there and can be read and written, for `downloadsctl check`; else a sentence
    in *why. */
apr_status_t mdl_mailbox_check(const mdl_mailbox_t *box, const char **why, apr_pool_t *p);

#endif
