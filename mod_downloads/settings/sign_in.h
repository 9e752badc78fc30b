/*
 * The form to sign in with a name and a password, which mod_auth_form takes
 * (conf/settings-form.conf), and the way out where httpd itself authenticates.
 */
#ifndef MDL_SETTINGS_SIGN_IN_H
#define MDL_SETTINGS_SIGN_IN_H

#include "settings/visit.h"

/** Shows the form to anybody; the query "failed" or "out" says what was before. */
int mdl_sign_in_show(mdl_visit_t *visit);

/** Says how one signs out where a browser sends name and password by itself (RFC 7617), which no
   server can end.  A sign-in by form or by OpenID Connect has an address of its own for that. */
int mdl_sign_in_end(mdl_visit_t *visit);

#endif
