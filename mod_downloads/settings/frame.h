/*
 * The frame of every page of the settings: templates, what all of them show, and headers.
 */
#ifndef MDL_SETTINGS_FRAME_H
#define MDL_SETTINGS_FRAME_H

#include "base/text/json.h"
#include "base/text/letter.h"
#include "settings/visit.h"

/** Reads the templates, in the folder "settings" of DownloadsTemplates, and DownloadsSettingsURL;
   for each httpd child, before its threads. */
void mdl_frame_child_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The path of DownloadsSettingsURL, decoded as r->uri is, without a slash at its end. */
const char *mdl_frame_root(void);

/** The origin of DownloadsSettingsURL, as browsers send it in the Origin header (RFC 6454). */
const char *mdl_frame_origin(void);

/** The path of a page: that of the settings, "/" and the formatted rest, in the request's pool. */
const char *mdl_frame_path(const mdl_visit_t *visit, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** An object with what every template gets: user, role, shop, paths, a form's token, and the action
    that a redirect reports. */
mdl_json_t *mdl_frame_data(const mdl_visit_t *visit);

/** Adds a boolean member for each of an enum's names: true for value's, false for all others, which
    hide members of the same name in the objects around. */
void mdl_frame_add_choice(mdl_json_t *to, const char *const *names, int value);

/** A shop's state as its forms carry it: "approved", "suspended-blocked". */
const char *mdl_frame_shop_state(const mdl_shop_t *shop, apr_pool_t *p);

/** Sends the page of a template ("keys.html"); list may be NULL. */
int mdl_frame_send(mdl_visit_t *visit, int status, const char *name, const mdl_json_t *data,
                   const mdl_template_list_t *list);

/** Sends the HTML of an email, for a frame of another page. */
int mdl_frame_send_letter(mdl_visit_t *visit, const mdl_letter_t *letter);

/** Answers a page's script, which asks for JSON, with data and, to send its next form with, the
    member form_token. */
int mdl_frame_answer(mdl_visit_t *visit, int status, mdl_json_t *data);

/** Sends message.html with the member state set, such as "not_found". */
int mdl_frame_message(mdl_visit_t *visit, int status, const char *state);

/** Sends the message that the visit's form, or the file in it, has more than most bytes. */
int mdl_frame_too_large(mdl_visit_t *visit, apr_size_t most);

/** Sends the message for an error that no other page shows. */
int mdl_frame_failure(mdl_visit_t *visit, apr_status_t rv);

/** Redirects (303) to a page, which reports done, a name that its template knows, such as
    "key_revoked"; fields of the page's query may follow it, each after a "&". */
int mdl_frame_redirect(mdl_visit_t *visit, const char *path, const char *done);

/** Answers a form that is not shown again: redirects to a page of the shop, such as "keys", which
    reports what the form has done, or sends the failure. */
int mdl_frame_done(mdl_visit_t *visit, apr_status_t rv, const char *page);

#endif
