/*
 * downloadsctl mail test|flush
 */
#ifndef MDL_CTL_MAIL_H
#define MDL_CTL_MAIL_H

#include "ctl/command.h"

/** Sends one email by the configured transport and prints the mail server's response. */
int mdl_ctl_mail_test(mdl_ctl_t *ctl);

/** Makes emails that wait for another attempt due now. */
int mdl_ctl_mail_flush(mdl_ctl_t *ctl);

#endif
