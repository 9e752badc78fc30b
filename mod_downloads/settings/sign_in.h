/*
 * Signing in with a name and a password, where DownloadsSettingsSignIn names a provider of httpd's
 * (mod_auth.h) that checks them: a form, a session whose id the browser keeps in a cookie (RFC
 * 6265), and its end.  Passwords that are tried are limited by user and by network; what a guess is
 * answered, and when, does not say whether there is such a user.
 */
#ifndef MDL_SETTINGS_SIGN_IN_H
#define MDL_SETTINGS_SIGN_IN_H

#include "settings/visit.h"

/** Whether people sign in here, and not by a module of httpd. */
int mdl_sign_in_is_ours(const mdl_visit_t *visit);

/** Finds the session that a request belongs to, and sets its user; APR_ENOENT when there is none.
 */
apr_status_t mdl_sign_in_find(mdl_visit_t *visit);

/** Leads who has no session to the form, and from there back to the page at path, which is below
    the settings, or NULL. */
int mdl_sign_in_ask(mdl_visit_t *visit, const char *path);

#endif
