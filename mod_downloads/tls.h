/*
 * Whether a request may be served: with DownloadsRequireTLS On, keys and links must not travel in
 * clear.
 */
#ifndef MDL_TLS_H
#define MDL_TLS_H

#include <httpd.h>

#include "core/settings/settings.h"

/** The message of the problem "tls_required", which a refused request gets. */
#define MDL_TLS_REQUIRED "This service answers over TLS alone: use https."

/**
 * Whether settings let this request in: it came over TLS; or from a proxy in DownloadsTLSProxy that
 * says so by "X-Forwarded-Proto: https"; or from this machine, and no proxy has passed it on.  The
 * peer is the connection's own: what mod_remoteip makes of headers or of the PROXY protocol admits
 * nobody.
 */
int mdl_tls_admits(request_rec *r, const mdl_settings_t *settings);

#endif
