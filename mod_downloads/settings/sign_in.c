#include "settings/sign_in.h"

#include <string.h>

#include <ap_provider.h>
#include <apr_md5.h>
#include <apr_strings.h>
#include <http_log.h>
#include <mod_auth.h>
#include <util_cookies.h>

#include "base/clock.h"
#include "core/shop/forgery.h"
#include "core/shop/staff_session.h"
#include "settings/frame.h"
#include "settings/pages.h"

APLOG_USE_MODULE(downloads);

/* Browsers take a cookie with this prefix only from its own host, over TLS and for all paths (RFC
   6265bis, section 4.1.3.2), so no neighbouring host can plant a session. */
#define COOKIE            "__Host-downloads"
#define COOKIE_ATTRIBUTES "; Path=/; Secure; HttpOnly; SameSite=Lax"

#define PASSWORD_MAX 1024 /* bytes */
#define TARGET_MAX   1024

/* The hash of a password that nobody has, as "htpasswd -B -C 10" makes it (docs/settings.md). */
#define NOBODYS_PASSWORD "$2y$10$nobody.has.this.salt..jMBko20fQzTh/WHgoIJbhCIuf2SRajK"

/* What a path and a query are made of (RFC 3986, section 3), as far as addresses here need it. */
#define TARGET_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/?=&%+"

int mdl_sign_in_is_ours(const mdl_visit_t *visit)
{
    return visit->service->settings->settings_sign_in != NULL;
}

/* NULL when the browser has sent none. */
static const char *sign_in_cookie(request_rec *r)
{
    const char *id = NULL;

    return ap_cookie_read(r, COOKIE, &id, 0) == APR_SUCCESS && id != NULL && *id != '\0' ? id
                                                                                         : NULL;
}

MDL_EFFECT(mdl_staff_session_find, mdl_staff_session_find_t *)
MDL_EFFECT(mdl_staff_session_prolong, const mdl_staff_session_find_t *)

apr_status_t mdl_sign_in_find(mdl_visit_t *visit)
{
    mdl_staff_session_find_t find = {.id = sign_in_cookie(visit->r)};
    apr_status_t rv = find.id != NULL ? mdl_visit_read(visit, mdl_staff_session_find_effect, &find)
                                      : APR_ENOENT;

    /* An error is ignored: on a full disk pages still work, and the session ends earlier. */
    if (rv == APR_SUCCESS && find.needs_prolongation) {
        mdl_visit_write_on(visit, mdl_staff_session_prolong_effect, &find);
    }
    if (rv == APR_SUCCESS) {
        visit->user = find.user;
        visit->r->user = apr_pstrdup(visit->r->pool, find.user); /* for the access log */
    }
    return rv;
}

/* The target after signing in, relative to the settings; "" when it could lead elsewhere. */
static const char *target_check(const char *target)
{
    return target != NULL && *target != '/' && strlen(target) <= TARGET_MAX &&
                   strspn(target, TARGET_CHARACTERS) == strlen(target) &&
                   strstr(target, "..") == NULL
               ? target
               : "";
}

static int path_is_search(const char *path)
{
    const char *last = path != NULL ? strrchr(path, '/') : NULL;

    return last != NULL && strcmp(last, "/search") == 0;
}

/* What is searched for may be a license key, which no log may get with the form's address. */
int mdl_sign_in_ask(mdl_visit_t *visit, const char *path, const char *args)
{
    apr_pool_t *p = visit->r->pool;
    const char *target = path != NULL ? ap_os_escape_path(p, path, 1) : "";
    int ended = visit->r->method_number != M_GET; /* what a form sent is lost */
    const char *query = ended ? "?ended" : "";

    args = path_is_search(path) ? NULL : args;
    target = target_check(apr_pstrcat(p, target, args != NULL ? "?" : "", args, NULL));
    if (*target != '\0') {
        query = apr_pstrcat(p, query, ended ? "&to=" : "?to=", ap_escape_urlencoded(p, target),
                            NULL);
    }
    return mdl_frame_redirect(visit, mdl_frame_path(visit, "sign-in%s", query), NULL);
}

/* Sends the form with what was typed, except the password. */
static int form_send(mdl_visit_t *visit, int status, const char *state, const char *name,
                     const char *target)
{
    mdl_json_t *data = mdl_frame_data(visit);

    if (state != NULL) {
        mdl_json_add_bool(data, state, 1);
    }
    mdl_json_add_string(data, "name", name);
    mdl_json_add_string(data, "to", target_check(target));
    return mdl_frame_send(visit, status, "sign_in.html", data, NULL);
}

/* "out" or "ended", with which the query begins, tells why the form is shown. */
static int sign_in_show(mdl_visit_t *visit)
{
    const char *query = visit->r->args != NULL ? visit->r->args : "";
    const char *first = apr_pstrmemdup(visit->r->pool, query, strcspn(query, "&"));
    const char *state = strcmp(first, "out") == 0     ? "out"
                        : strcmp(first, "ended") == 0 ? "ended"
                                                      : NULL;

    return form_send(visit, HTTP_OK, state, NULL, mdl_visit_parameter(visit, "to"));
}

/* An attempt to sign in, and what the limits of its user and network have left. */
typedef struct {
    const char *user;
    const char *password;
    const char *network;
    mdl_rate_state_t of_user;
    mdl_rate_state_t of_network;
} guess_t;

/* Counts an attempt before its check, or many could be checked at once.  One refused by the user's
   limit still counts for the network, which bounds the cost of a locked name. */
static int guess_admit(mdl_visit_t *visit, guess_t *guess)
{
    mdl_rate_limit_t *limit = visit->service->rate_limit;
    apr_time_t now = mdl_clock_monotonic();

    mdl_rate_limit_take(limit, MDL_RATE_SIGN_IN_NETWORK, guess->network, 1, now,
                        &guess->of_network);
    if (guess->of_network.allowed) {
        mdl_rate_limit_take(limit, MDL_RATE_SIGN_IN_USER, guess->user, 1, now, &guess->of_user);
    }
    return guess->of_network.allowed && guess->of_user.allowed;
}

/* Returns the tokens: a correct password is no guess. */
static void guess_forget(mdl_visit_t *visit, const guess_t *guess)
{
    mdl_rate_limit_return(visit->service->rate_limit, MDL_RATE_SIGN_IN_NETWORK, guess->network, 1);
    mdl_rate_limit_return(visit->service->rate_limit, MDL_RATE_SIGN_IN_USER, guess->user, 1);
}

static authn_status guess_check(mdl_visit_t *visit, const guess_t *guess)
{
    request_rec *r = visit->r;
    const char *name = visit->service->settings->settings_sign_in;
    const authn_provider *provider = ap_lookup_provider(AUTHN_PROVIDER_GROUP, name,
                                                        AUTHN_PROVIDER_VERSION);
    authn_status status;

    apr_table_setn(r->notes, AUTHN_PROVIDER_NAME_NOTE, name); /* as mod_auth_basic does */
    status = provider->check_password(r, guess->user, guess->password);
    apr_table_unset(r->notes, AUTHN_PROVIDER_NAME_NOTE);
    if (status == AUTH_USER_NOT_FOUND) {
        /* Takes as long as a user's password, since timing would tell who exists. */
        (void)apr_password_validate(guess->password, NOBODYS_PASSWORD);
    }
    return status;
}

/* Logs only names of existing users: people type passwords into the name's field. */
static void guess_log(const mdl_visit_t *visit, const guess_t *guess, authn_status status)
{
    request_rec *r = visit->r;
    mdl_rate_state_t state;

    mdl_forgery_note(visit->service->rate_limit, "password", r->useragent_ip, &state, r->pool);
    if (guess->of_user.remaining == 0 && status == AUTH_DENIED) {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                      "MDL0505: too many wrong passwords of the user %s, the last from %s: nobody "
                      "can sign in with this name for %d s",
                      guess->user, r->useragent_ip, (int)apr_time_sec(guess->of_user.more_in) + 1);
    }
    if (guess->of_network.remaining == 0) {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                      "MDL0506: too many wrong passwords from %s: nobody can sign in from this "
                      "network for %d s",
                      guess->network, (int)apr_time_sec(guess->of_network.more_in) + 1);
    }
}

static int guess_refuse_to_check(mdl_visit_t *visit, const guess_t *guess, const char *target)
{
    apr_interval_time_t wait = guess->of_network.allowed ? guess->of_user.more_in
                                                         : guess->of_network.more_in;

    apr_table_setn(visit->r->headers_out, "Retry-After",
                   apr_itoa(visit->r->pool, (int)apr_time_sec(wait) + 1));
    return form_send(visit, HTTP_TOO_MANY_REQUESTS, "too_many", guess->user, target);
}

MDL_EFFECT(mdl_staff_session_begin, mdl_staff_session_begin_t *)

/* The session gets a new id: the browser's former id may be known to somebody else. */
static int sign_in_admit(mdl_visit_t *visit, const char *user, const char *target)
{
    request_rec *r = visit->r;
    mdl_staff_session_begin_t begin = {.user = user, .before = sign_in_cookie(r)};
    apr_status_t rv = mdl_visit_write_on(visit, mdl_staff_session_begin_effect, &begin);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    apr_table_addn(r->headers_out, "Set-Cookie",
                   apr_pstrcat(r->pool, COOKIE "=", begin.id, COOKIE_ATTRIBUTES, NULL));
    return mdl_frame_redirect(visit, mdl_frame_path(visit, "%s", target_check(target)), NULL);
}

/* Begins a session, or sends the form again with 403, or 429 and Retry-After. */
static int sign_in_take(mdl_visit_t *visit)
{
    request_rec *r = visit->r;
    const char *target = mdl_visit_field(visit, "to");
    guess_t guess = {.user = mdl_visit_field(visit, "name"),
                     .password = apr_table_get(visit->fields, "password"),
                     .network = mdl_rate_limit_network(r->useragent_ip, r->pool)};
    authn_status status;

    if (guess.user == NULL || strlen(guess.user) > MDL_MEMBER_USER_MAX || guess.password == NULL ||
        strlen(guess.password) > PASSWORD_MAX) {
        return form_send(visit, HTTP_FORBIDDEN, "failed", NULL, target);
    }
    if (!guess_admit(visit, &guess)) {
        return guess_refuse_to_check(visit, &guess, target);
    }
    status = guess_check(visit, &guess);
    if (status == AUTH_GRANTED) {
        guess_forget(visit, &guess);
        return sign_in_admit(visit, guess.user, target);
    }
    if (status == AUTH_DENIED || status == AUTH_USER_NOT_FOUND) {
        guess_log(visit, &guess, status);
        return form_send(visit, HTTP_FORBIDDEN, "failed", guess.user, target);
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "MDL0507: nobody can sign in: the provider %s of DownloadsSettingsSignIn can't "
                  "check passwords",
                  visit->service->settings->settings_sign_in);
    return mdl_frame_message(visit, HTTP_INTERNAL_SERVER_ERROR, "error");
}

static apr_status_t session_end_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_staff_session_end(db, arg, p);
}

/* Explains how to sign out where a browser sends name and password by itself (RFC 7617), which no
   server can end; 405 where users sign in here. */
static int sign_in_explain_end(mdl_visit_t *visit)
{
    if (mdl_sign_in_is_ours(visit)) {
        apr_table_setn(visit->r->headers_out, "Allow", "POST");
        return mdl_frame_message(visit, HTTP_METHOD_NOT_ALLOWED, "wrong_method");
    }
    return mdl_frame_message(visit, HTTP_OK, "close_browser");
}

/* Ends the session of a user who has signed in here. */
static int sign_in_end(mdl_visit_t *visit)
{
    request_rec *r = visit->r;
    apr_status_t rv;

    if (!mdl_sign_in_is_ours(visit)) {
        return sign_in_explain_end(visit);
    }
    rv = mdl_visit_write_on(visit, session_end_effect, apr_pstrdup(r->pool, sign_in_cookie(r)));
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    apr_table_addn(r->headers_out, "Set-Cookie", COOKIE "=" COOKIE_ATTRIBUTES "; Max-Age=0");
    return mdl_frame_redirect(visit, mdl_frame_path(visit, "sign-in?out"), NULL);
}

const mdl_page_t mdl_sign_in_pages[] = {
    {"sign-out", .sees = MDL_ROLE_READ_ONLY, .get = sign_in_explain_end, .acts = MDL_ROLE_READ_ONLY,
     .post = sign_in_end},
    {0},
};

const mdl_page_t mdl_sign_in_page = {"sign-in", .get = sign_in_show, .post = sign_in_take};
