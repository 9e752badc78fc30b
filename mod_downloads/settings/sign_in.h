/*
 * Signing in with a name and a password, where DownloadsSettingsSignIn names a provider of httpd's
 * (mod_auth.h) that checks them: a form, a session whose id the browser keeps in a cookie (RFC
 * 6265), and its end.  Attempts are limited by user and by network; neither the response to a wrong
 * password nor its timing tells whether the user exists.
 */
#ifndef MDL_SETTINGS_SIGN_IN_H
#define MDL_SETTINGS_SIGN_IN_H

#include "settings/visit.h"

/** Whether users sign in here, not by a module of httpd. */
int mdl_sign_in_is_ours(const mdl_visit_t *visit);

/** Finds the request's session and sets visit->user; APR_ENOENT when there is none. */
apr_status_t mdl_sign_in_find(mdl_visit_t *visit);

/** Redirects a user without a session to the form, and from there on to a page: its path below the
    settings, decoded, and its query, or NULL. */
int mdl_sign_in_ask(mdl_visit_t *visit, const char *path, const char *args);

#endif
