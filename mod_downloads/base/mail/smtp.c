#include "base/mail/smtp.h"

#include <string.h>
#include <sys/socket.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <curl/curl.h>

#include "base/text/utf8.h"

#define CONNECT_TIMEOUT_S  30L
#define RESPONSE_TIMEOUT_S 600L /* RFC 5321 section 4.5.3.2.6: after the final dot */
#define TOTAL_TIMEOUT_S    660L
#define LINE_SIZE          512

struct mdl_smtp_t {
    const mdl_mail_config_t *config;
    CURL *easy; /* NULL after a disconnect */
    int begun;  /* the server has begun to receive the last message */
    int utf8;   /* the connected server offers SMTPUTF8 (RFC 6531) */
};

/* One attempt to send, for libcurl's callbacks. */
typedef struct {
    mdl_smtp_t *smtp;
    const char *message;
    apr_size_t length;
    apr_size_t offset;
    int begun; /* libcurl has asked for the message: DATA was accepted */
    char reply[LINE_SIZE];
    char error[CURL_ERROR_SIZE];
    CURLcode code;
    long status;
    long connects;
} attempt_t;

static int is_stopped(const mdl_smtp_t *smtp)
{
    return smtp->config->stopped != NULL && smtp->config->stopped(smtp->config->baton);
}

/* Whether to give up the message.  Not once it has begun: if the server accepted it, it would be
   sent twice. */
static int must_give_up(const mdl_smtp_t *smtp)
{
    const mdl_mail_config_t *config = smtp->config;

    return !smtp->begun &&
           (is_stopped(smtp) || (config->withdrawn != NULL && config->withdrawn(config->baton)));
}

static size_t message_give(char *buffer, size_t size, size_t count, void *baton)
{
    attempt_t *attempt = baton;
    apr_size_t length = attempt->length - attempt->offset;

    /* The process may have been suspended since the last progress callback. */
    if (must_give_up(attempt->smtp)) {
        return CURL_READFUNC_ABORT;
    }
    if (length > size * count) {
        length = size * count;
    }
    attempt->begun = attempt->smtp->begun = 1;
    memcpy(buffer, attempt->message + attempt->offset, length);
    attempt->offset += length;
    return length;
}

/* Notes whether the server offers SMTPUTF8.  Its 220 resets that: EHLO follows a greeting or
   STARTTLS. */
static void offers_note(mdl_smtp_t *smtp, const char *line, apr_size_t length)
{
    static const char offer[] = "SMTPUTF8";

    if (length >= 3 && memcmp(line, "220", 3) == 0) {
        smtp->utf8 = 0;
    } else if (length == 4 + sizeof offer - 1 && memcmp(line, "250", 3) == 0 &&
               strncasecmp(line + 4, offer, sizeof offer - 1) == 0) {
        smtp->utf8 = 1;
    }
}

static size_t reply_take(char *line, size_t size, size_t count, void *baton)
{
    attempt_t *attempt = baton;
    apr_size_t length = size * count;

    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n')) {
        length--;
    }
    offers_note(attempt->smtp, line, length);
    /* The reply to QUIT is never the reason of a failure. */
    if (length >= 3 && memcmp(line, "221", 3) == 0) {
        return size * count;
    }
    if (length >= sizeof attempt->reply) {
        length = sizeof attempt->reply - 1;
    }
    memcpy(attempt->reply, line, length);
    attempt->reply[length] = '\0';
    return size * count;
}

static size_t drop_body(char *data, size_t size, size_t count, void *baton)
{
    (void)data;
    (void)baton;
    return size * count;
}

static int on_progress(void *baton, curl_off_t total, curl_off_t now, curl_off_t upload_total,
                       curl_off_t upload_now)
{
    (void)total;
    (void)now;
    (void)upload_total;
    (void)upload_now;
    return must_give_up(baton);
}

/* curl_easy_cleanup sends QUIT, and would wait two minutes for a silent server. */
static void easy_close(mdl_smtp_t *smtp, int how)
{
    curl_socket_t socket = CURL_SOCKET_BAD;

    if (curl_easy_getinfo(smtp->easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK &&
        socket != CURL_SOCKET_BAD) {
        shutdown(socket, how);
    }
    curl_easy_cleanup(smtp->easy);
    smtp->easy = NULL;
}

static apr_status_t smtp_destroy(void *data)
{
    mdl_smtp_t *smtp = data;

    if (smtp->easy != NULL) {
        easy_close(smtp, is_stopped(smtp) ? SHUT_RDWR : SHUT_RD);
    }
    return APR_SUCCESS;
}

void mdl_smtp_disconnect(mdl_smtp_t *smtp)
{
    if (smtp->easy != NULL) {
        easy_close(smtp, SHUT_RD);
    }
}

static long use_ssl_of(const mdl_mail_config_t *config)
{
    if (config->tls == MDL_MAIL_TLS_OFF) {
        return CURLUSESSL_NONE;
    }
    return config->tls == MDL_MAIL_TLS_TRY && config->user == NULL ? CURLUSESSL_TRY
                                                                   : CURLUSESSL_ALL;
}

apr_status_t mdl_smtp_create(mdl_smtp_t **smtp, const mdl_mail_config_t *config, apr_pool_t *p)
{
    mdl_smtp_t *made = apr_pcalloc(p, sizeof *made);

    made->config = config;
    made->easy = curl_easy_init();
    if (made->easy == NULL) {
        return APR_ENOMEM;
    }
    apr_pool_cleanup_register(p, made, smtp_destroy, apr_pool_cleanup_null);
    *smtp = made;
    return APR_SUCCESS;
}

/* Sets all options but the message's.  The reset keeps open connections.  False without memory. */
static int attempt_set_options(mdl_smtp_t *smtp, attempt_t *attempt)
{
    const mdl_mail_config_t *config = smtp->config;
    CURL *easy = smtp->easy != NULL ? smtp->easy : curl_easy_init();

    if (easy == NULL) {
        attempt->code = CURLE_OUT_OF_MEMORY;
        return 0;
    }
    smtp->easy = easy;
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, config->transport);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_USE_SSL, use_ssl_of(config));
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    curl_easy_setopt(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, RESPONSE_TIMEOUT_S);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, TOTAL_TIMEOUT_S);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, smtp);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, reply_take);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->error);
    if (config->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
    }
    if (config->user != NULL) {
        curl_easy_setopt(easy, CURLOPT_USERNAME, config->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, config->password ? config->password : "");
    }
    return 1;
}

static void attempt_perform(attempt_t *attempt)
{
    CURL *easy = attempt->smtp->easy;

    attempt->code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &attempt->status);
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &attempt->connects);
    /* The attempt is the caller's local: libcurl must not write into it when it closes later. */
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, drop_body);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, NULL);
}

static void attempt_send(attempt_t *attempt, mdl_smtp_t *smtp, const char *from, const char *to,
                         const char *message, apr_size_t length, int fresh)
{
    struct curl_slist *recipients = curl_slist_append(NULL, to);
    CURL *easy;

    memset(attempt, 0, sizeof *attempt);
    attempt->smtp = smtp;
    smtp->begun = 0;
    attempt->message = message;
    attempt->length = length;
    if (recipients == NULL) {
        attempt->code = CURLE_OUT_OF_MEMORY;
        return;
    }
    if (!attempt_set_options(smtp, attempt)) {
        curl_slist_free_all(recipients);
        return;
    }
    easy = smtp->easy;
    curl_easy_setopt(easy, CURLOPT_MAIL_FROM, from);
    curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, recipients);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, message_give);
    curl_easy_setopt(easy, CURLOPT_READDATA, attempt);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)length);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)fresh);
    attempt_perform(attempt);
    curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, NULL);
    curl_slist_free_all(recipients);
}

/* Sends a command, and connects if necessary. */
static void attempt_ask(attempt_t *attempt, mdl_smtp_t *smtp, const char *command, int fresh)
{
    memset(attempt, 0, sizeof *attempt);
    attempt->smtp = smtp;
    smtp->begun = 0;
    if (attempt_set_options(smtp, attempt)) {
        curl_easy_setopt(smtp->easy, CURLOPT_CUSTOMREQUEST, command);
        curl_easy_setopt(smtp->easy, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(smtp->easy, CURLOPT_FRESH_CONNECT, (long)fresh);
        attempt_perform(attempt);
    }
}

/* Whether the attempt failed only because the server had closed the idle connection. */
static int attempt_met_stale_connection(const attempt_t *attempt)
{
    return attempt->code != CURLE_OK && attempt->code != CURLE_ABORTED_BY_CALLBACK &&
           attempt->connects == 0 && !attempt->begun &&
           (attempt->status < 400 || attempt->status == 421);
}

/* Replies about login and TLS (RFC 4954, RFC 3207): the configuration is wrong, not the message. */
static int is_login_reply(long status)
{
    return status == 530 || status == 534 || status == 535 || status == 538;
}

/* Whether the server accepted the message, even if the transfer failed afterwards. */
static int is_taken(const attempt_t *attempt)
{
    return attempt->begun && attempt->status >= 200 && attempt->status < 300;
}

/* Whether a relay reports that the operator's daily sending limit is reached: Google by 5.4.5,
   which is congestion and so temporary (RFC 3463 section 3.5), Microsoft by 5.1.90. */
static int is_limit_reply(const char *reply)
{
    static const char *const codes[] = {"5.4.5", "5.1.90"};

    for (apr_size_t i = 0; i < sizeof codes / sizeof *codes && strlen(reply) > 4; i++) {
        apr_size_t length = strlen(codes[i]);

        if (strncmp(reply + 4, codes[i], length) == 0 && !apr_isdigit(reply[4 + length])) {
            return 1;
        }
    }
    return 0;
}

/* Whether the server refused the message, its sender or its recipient: libcurl has other codes for
   a refused greeting, EHLO or STARTTLS. */
static int is_message_refused(const attempt_t *attempt)
{
    return attempt->status >= 500 && attempt->status < 600 && !is_login_reply(attempt->status) &&
           !is_limit_reply(attempt->reply) && (attempt->begun || attempt->code == CURLE_SEND_ERROR);
}

static const char *attempt_reason(const attempt_t *attempt, apr_pool_t *p)
{
    const char *error = attempt->error[0] ? attempt->error : curl_easy_strerror(attempt->code);

    if (attempt->code == CURLE_ABORTED_BY_CALLBACK) {
        return "The worker was stopped during the transfer.";
    }
    if (attempt->code == CURLE_USE_SSL_FAILED) {
        return "The SMTP server offers no STARTTLS, which is required.";
    }
    if (attempt->code == CURLE_LOGIN_DENIED || is_login_reply(attempt->status)) {
        return apr_psprintf(p, "The SMTP server refused the login: %s", attempt->reply);
    }
    if (attempt->code == CURLE_PEER_FAILED_VERIFICATION ||
        attempt->code == CURLE_SSL_CONNECT_ERROR || attempt->code == CURLE_SSL_CACERT_BADFILE) {
        return apr_psprintf(p, "No TLS with the SMTP server: %s", error);
    }
    if (attempt->begun && attempt->status == 354) {
        return apr_psprintf(p,
                            "The connection ended before the SMTP server answered for the "
                            "message: %s",
                            error);
    }
    if (attempt->status >= 400) {
        return apr_pstrdup(p, attempt->reply);
    }
    return apr_psprintf(p, "No SMTP transfer: %s", error);
}

/* Asks whether the server has SMTPUTF8 before the recipient is named: libcurl would send the bytes
   even without the extension.  Returns MDL_MAIL_SENT if it does. */
static mdl_mail_outcome_t smtp_ask_for_utf8(mdl_smtp_t *smtp, const char **detail, apr_pool_t *p)
{
    attempt_t attempt;

    attempt_ask(&attempt, smtp, "NOOP", 0);
    if (attempt_met_stale_connection(&attempt)) {
        attempt_ask(&attempt, smtp, "NOOP", 1);
    }
    if (attempt.code != CURLE_OK) {
        *detail = attempt_reason(&attempt, p);
        return MDL_MAIL_LATER;
    }
    if (!smtp->utf8) {
        *detail = "The mail server does not accept addresses with such characters before the @ (it "
                  "offers no SMTPUTF8); the customer has to give another address.";
        return MDL_MAIL_FAILED;
    }
    return MDL_MAIL_SENT;
}

mdl_mail_outcome_t mdl_smtp_send(mdl_smtp_t *smtp, const char *from, const char *to,
                                 const char *message, apr_size_t length, const char **detail,
                                 apr_pool_t *p)
{
    mdl_mail_outcome_t outcome = mdl_utf8_is_ascii(to) ? MDL_MAIL_SENT
                                                       : smtp_ask_for_utf8(smtp, detail, p);
    attempt_t attempt;

    if (outcome != MDL_MAIL_SENT) {
        return outcome;
    }
    attempt_send(&attempt, smtp, from, to, message, length, 0);
    if (attempt_met_stale_connection(&attempt)) {
        attempt_send(&attempt, smtp, from, to, message, length, 1);
    }
    if (attempt.code == CURLE_OK || is_taken(&attempt)) {
        *detail = apr_pstrdup(p, attempt.reply);
        return MDL_MAIL_SENT;
    }
    *detail = attempt_reason(&attempt, p);
    /* The status is the last reply's: after a 354 the message's own reply is missing. */
    if (attempt.begun && attempt.status == 354) {
        return MDL_MAIL_UNKNOWN;
    }
    return is_message_refused(&attempt) ? MDL_MAIL_FAILED : MDL_MAIL_LATER;
}

apr_status_t mdl_smtp_check(mdl_smtp_t *smtp, const char *from, const char **detail, apr_pool_t *p)
{
    attempt_t attempt;

    attempt_ask(&attempt, smtp, apr_psprintf(p, "MAIL FROM:<%s>", from), 1);
    /* libcurl takes the command for a VRFY, for which 553 is no failure. */
    if (attempt.code == CURLE_OK && attempt.status < 400) {
        return APR_SUCCESS;
    }
    *detail = attempt_reason(&attempt, p);
    return APR_EGENERAL;
}
