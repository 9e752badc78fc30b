/*
 * The background processes of all nodes as the database knows them, for `downloadsctl check`.
 */
#ifndef MDL_CTL_NODES_H
#define MDL_CTL_NODES_H

#include "ctl/command.h"

/** Whether the database knows a live background process of this host, where settings and httpd
    have one, and none of another that is silent.  *message says what to do.  Waits up to five
   seconds for one of an httpd that runs: it may just be restarting. */
int mdl_ctl_nodes_live(mdl_ctl_t *ctl, const char **message);

/** Whether the live ones are of this program's build; *message says what to do. */
int mdl_ctl_nodes_are_current(mdl_ctl_t *ctl, const char **message);

#endif
