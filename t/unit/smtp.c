/*
 * Delivering mail to a real SMTP server (t/lib/smtp_peer.py, package python3-aiosmtpd), and to a
 * mock that breaks connections.
 */
#include "t/unit/mail.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <apr_atomic.h>
#include <apr_thread_proc.h>

/* --- the real server --- */

typedef struct {
    pid_t pid;
    int input;
    int plain, clear, starttls, smtps, utf8;
    const char *ca_file;
} peer_t;

static int start_peer(peer_t *peer, apr_pool_t *p)
{
    const char *key = in_folder("key.pem", p);
    const char *certificate = in_folder("certificate.pem", p);
    const char *const openssl[] = {"/usr/bin/openssl",
                                   "req",
                                   "-x509",
                                   "-newkey",
                                   "rsa:2048",
                                   "-nodes",
                                   "-days",
                                   "2",
                                   "-subj",
                                   "/CN=127.0.0.1",
                                   "-addext",
                                   "subjectAltName=IP:127.0.0.1",
                                   "-keyout",
                                   key,
                                   "-out",
                                   certificate,
                                   NULL};
    const char *const python[] = {"/usr/bin/python3", "-W", "ignore", "t/lib/smtp_peer.py", folder,
                                  certificate,        key,  NULL};
    int to[2], from[2];
    char line[200];
    FILE *answer;
    int count;

    if (run(openssl) != 0 || pipe(to) != 0 || pipe(from) != 0) {
        return 0;
    }
    peer->pid = spawn(python, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    peer->input = to[1];
    peer->ca_file = certificate;
    answer = fdopen(from[0], "r");
    if (fgets(line, sizeof line, answer) == NULL) {
        line[0] = '\0';
    }
    count = sscanf(line, "%d %d %d %d %d", &peer->plain, &peer->clear, &peer->starttls,
                   &peer->smtps, &peer->utf8);
    if (count != 5) {
        printf("# %s\n", line);
    }
    return count == 5;
}

static void end_peer(peer_t *peer)
{
    close(peer->input);
    waitpid(peer->pid, NULL, 0);
}

static const char *url(const char *scheme, int port, apr_pool_t *p)
{
    return apr_psprintf(p, "%s://127.0.0.1:%d", scheme, port);
}

static int logged(const char *text, apr_pool_t *p)
{
    return strstr(slurp(in_folder("log", p), p), text) != NULL;
}

/* Counts the messages that the server accepted, and its connections. */
static void count_log(const char *listener, int *mails, int *connections, apr_pool_t *p)
{
    const char *prefix = apr_pstrcat(p, listener, " mail ", NULL);
    char *log = apr_pstrdup(p, slurp(in_folder("log", p), p));
    int last_port = 0;
    char *state;

    *mails = *connections = 0;
    for (char *line = apr_strtok(log, "\n", &state); line != NULL;
         line = apr_strtok(NULL, "\n", &state)) {
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            int port = atoi(line + strlen(prefix));

            (*mails)++;
            *connections += port != last_port;
            last_port = port;
        }
    }
}

static void smtp_plain(const peer_t *peer, apr_pool_t *p)
{
    mdl_mail_config_t config = config_of(url("smtp", peer->plain, p), MDL_MAIL_TLS_TRY);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    char *dots = apr_pcalloc(p, 60001);
    int mails, connections;
    const char *detail;

    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT, "a message is sent");
    is_str(detail, "250 OK", "the detail is the server's reply");
    is_str(slurp(in_folder("1.eml", p), p), MESSAGE,
           "it arrives byte for byte, including its dots");
    ok(logged(" " FROM " " TO "\n", p), "sender and recipient are those of the envelope");
    memset(dots, '.', 60000);
    for (int i = 1; i < 60000; i += 3) {
        memcpy(dots + i, "\r\n", 2);
    }
    is_int(mdl_mailer_send(mailer, FROM, TO, dots, 60000, &detail, p), MDL_MAIL_SENT,
           "a large message of dots is sent");
    ok(strcmp(slurp(in_folder("2.eml", p), p), dots) == 0, "it arrives byte for byte");
    send_to(mailer, "b@example.test", &detail, p);
    send_to(mailer, "c@example.test", &detail, p);
    count_log("plain", &mails, &connections, p);
    is_int(mails, 4, "four messages arrive");
    is_int(connections, 1, "one connection is used for them");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_SUCCESS,
           "the check finds the server");
}

static void smtp_answers(const peer_t *peer, apr_pool_t *p)
{
    static const struct {
        const char *to;
        mdl_mail_outcome_t outcome;
        const char *name;
    } answers[] = {
        {"rcpt450@x.test", MDL_MAIL_LATER, "450 at RCPT gives MDL_MAIL_LATER"},
        {"rcpt550@x.test", MDL_MAIL_FAILED, "550 at RCPT gives MDL_MAIL_FAILED"},
        {"rcpt552@x.test", MDL_MAIL_FAILED, "552 at RCPT gives MDL_MAIL_FAILED"},
        {"data451@x.test", MDL_MAIL_LATER, "451 after the message gives MDL_MAIL_LATER"},
        {"data554@x.test", MDL_MAIL_FAILED, "554 after the message gives MDL_MAIL_FAILED"},
        {"limit@x.test", MDL_MAIL_LATER, "550 5.4.5, a relay's limit for us, gives MDL_MAIL_LATER"},
        {"limited@x.test", MDL_MAIL_LATER, "and so does 550 5.1.90"},
        {TO, MDL_MAIL_SENT, "a message is sent after all these replies"}};
    mdl_mail_config_t config = config_of(url("smtp", peer->plain, p), MDL_MAIL_TLS_OFF);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    const char *detail;

    for (apr_size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        is_int(send_to(mailer, answers[i].to, &detail, p), answers[i].outcome, answers[i].name);
    }
    send_to(mailer, "rcpt550@x.test", &detail, p);
    is_str(detail, "550 1.2.3 the test chose this answer for rcpt",
           "the detail is the server's line");
}

static void smtp_utf8(const peer_t *peer, apr_pool_t *p)
{
    static const char to[] = "j\xC3\xBCrgen@x.test";
    mdl_mail_config_t config = config_of(url("smtp", peer->utf8, p), MDL_MAIL_TLS_OFF);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    int mails, connections;
    const char *detail;

    is_int(send_to(mailer, to, &detail, p), MDL_MAIL_SENT,
           "an address that is not ASCII is written to over SMTPUTF8");
    ok(logged(" j\xC3\xBCrgen@x.test SMTPUTF8", p), "the server was told so, and got its bytes");
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT, "another is, too");
    is_int(send_to(mailer, to, &detail, p), MDL_MAIL_SENT, "and the first again");
    count_log("utf8", &mails, &connections, p);
    is_int(connections, 1, "over one connection, whose offer is remembered");

    config.transport = url("smtp", peer->plain, p);
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, to, &detail, p), MDL_MAIL_FAILED, "it fails where there is no SMTPUTF8");
    ok(detail != NULL && strstr(detail, "does not accept addresses with such characters before"),
       "in our own words");
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT,
           "which is not the end of the connection");
}

static void smtp_refusals(const peer_t *peer, apr_pool_t *p)
{
    static const char *const bad[] = {"a@b.test>\r\nDATA", "a@b.test\r\nRCPT TO:<c@d.test>",
                                      "a@b.test\n",        "<a@b.test>",
                                      "a b@c.test",        ""};
    mdl_mail_config_t config = config_of(url("smtp", peer->plain, p), MDL_MAIL_TLS_OFF);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    int mails, after, connections;
    const char *detail;

    count_log("plain", &mails, &connections, p);
    for (apr_size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        is_int(send_to(mailer, bad[i], &detail, p), MDL_MAIL_FAILED, "an invalid recipient fails");
        is_int(mdl_mailer_send(mailer, bad[i], TO, MESSAGE, strlen(MESSAGE), &detail, p),
               MDL_MAIL_FAILED, "an invalid sender fails");
    }
    is_int(mdl_mailer_send(mailer, FROM, TO, "a\n.\nb\r\n", 7, &detail, p), MDL_MAIL_FAILED,
           "a message with a bare LF fails");
    is_int(mdl_mailer_send(mailer, FROM, TO, "a\r.\r\nb\r\n", 8, &detail, p), MDL_MAIL_FAILED,
           "a message with a bare CR fails");
    is_int(mdl_mailer_send(mailer, FROM, TO, "a\0\r\n", 4, &detail, p), MDL_MAIL_FAILED,
           "a message with a NUL fails");
    ok(detail && strstr(detail, "NUL"), "the detail names the reason");
    count_log("plain", &after, &connections, p);
    is_int(after, mails, "the server got none of them");
}

static void smtp_tls(const peer_t *peer, apr_pool_t *p)
{
    mdl_mail_config_t config = config_of(url("smtp", peer->starttls, p), MDL_MAIL_TLS_REQUIRED);
    int mails, connections;
    mdl_mailer_t *mailer;
    const char *detail;

    config.user = "shop";
    config.password = "secret";
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_LATER,
           "an untrusted certificate is refused");
    ok(detail && strncmp(detail, "No TLS with the SMTP server: ", 29) == 0,
       "the detail names the reason");
    ok(!logged("starttls login", p), "no login was tried");

    config.ca_file = peer->ca_file;
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT, "STARTTLS and AUTH send a message");
    send_to(mailer, TO, &detail, p);
    count_log("starttls", &mails, &connections, p);
    ok(mails == 2 && connections == 1, "the connection with TLS is reused");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_SUCCESS,
           "the check logs in");

    config.transport = url("smtps", peer->smtps, p);
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_SENT, "smtps sends a message");
    ok(logged("smtps login", p), "smtps logs in");

    config.password = "wrong";
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_LATER, "a refused login gives MDL_MAIL_LATER");
    ok(detail && strncmp(detail, "The SMTP server refused the login: 535", 38) == 0,
       "the detail names the reason");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_EGENERAL,
           "the check reports a refused login");
    ok(detail && strstr(detail, "refused the login") && !strstr(detail, "wrong"),
       "the detail does not contain the password");

    config.user = NULL;
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_LATER,
           "530 because of a missing login gives MDL_MAIL_LATER");
}

static void smtp_clear(const peer_t *peer, apr_pool_t *p)
{
    mdl_mail_config_t config = config_of(url("smtp", peer->clear, p), MDL_MAIL_TLS_REQUIRED);
    const char *detail;

    config.user = "shop";
    config.password = "secret";
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_LATER,
           "nothing is sent without STARTTLS if TLS is required");
    is_str(detail, "The SMTP server offers no STARTTLS, which is required.",
           "the detail names the reason");
    config.tls = MDL_MAIL_TLS_TRY;
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_LATER,
           "nothing is sent with a password without STARTTLS if TLS is tried");
    ok(!logged("clear login", p), "no password was sent in clear text");
    config.tls = MDL_MAIL_TLS_OFF;
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_SENT,
           "a message is sent with a password without STARTTLS if TLS is off");
    ok(logged("clear login", p), "the password was sent in clear text");
    config.tls = MDL_MAIL_TLS_TRY;
    config.user = NULL;
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_SENT,
           "a message is sent without a password and STARTTLS if TLS is tried");
}

/* --- the mock server, which breaks connections on demand --- */

typedef enum {
    MOCK_DROPS_AT_RCPT,
    MOCK_DROPS_AFTER_MESSAGE,
    MOCK_DROPS_SECOND_MAIL,
    MOCK_SILENT_FROM_START,
    MOCK_STOPS_AT_DATA,
    MOCK_SLOW_AFTER_MESSAGE,
    MOCK_SILENT_AT_QUIT,
    MOCK_SAYS_MUCH
} mock_behaviour_t;

typedef struct {
    mock_behaviour_t behaviour;
    const char *refuses; /* a command that is answered by 554, "" for the greeting, or NULL */
    int listener;
    int port;
    apr_thread_t *thread;
    apr_uint32_t connections;
    apr_uint32_t messages;
    apr_uint32_t silent; /* set once it is silent */
} mock_t;

static void say(FILE *client, const char *line)
{
    fputs(line, client);
    fflush(client);
}

/* Waits until the client has disconnected. */
static void fall_silent(mock_t *mock, FILE *client)
{
    apr_atomic_set32(&mock->silent, 1);
    while (fgetc(client) != EOF) {
    }
}

/* Reads the message; returns 0 if the connection is to be dropped. */
static int mock_data(mock_t *mock, FILE *client)
{
    char line[1024];

    if (mock->behaviour == MOCK_STOPS_AT_DATA) {
        apr_atomic_set32(&mock->silent, 1);
    }
    say(client, "354 go on\r\n");
    do {
        if (fgets(line, sizeof line, client) == NULL) {
            return 0;
        }
    } while (strcmp(line, ".\r\n") != 0);
    if (mock->behaviour == MOCK_DROPS_AFTER_MESSAGE) {
        return 0;
    }
    if (mock->behaviour == MOCK_SLOW_AFTER_MESSAGE) {
        apr_atomic_set32(&mock->silent, 1);
        apr_sleep(apr_time_from_msec(1300)); /* libcurl calls back about once a second */
    }
    if (mock->behaviour == MOCK_SAYS_MUCH) {
        say(client, "550-first line\r\n550 last \x1B[31m\xC3\xBC ");
        for (int i = 0; i < 700; i++) {
            fputc('x', client);
        }
        say(client, "\r\n");
        return 1;
    }
    apr_atomic_inc32(&mock->messages);
    say(client, "250 taken\r\n");
    return 1;
}

static void mock_session(mock_t *mock, FILE *client)
{
    char line[1024];
    int mails = 0;

    if (mock->behaviour == MOCK_SILENT_FROM_START) {
        fall_silent(mock, client);
        return;
    }
    if (mock->refuses != NULL && *mock->refuses == '\0') {
        say(client, "554 not you\r\n");
        return;
    }
    say(client, "220 mock.test\r\n");
    while (fgets(line, sizeof line, client) != NULL) {
        if (strncmp(line, "MAIL", 4) == 0 && ++mails == 2 &&
            mock->behaviour == MOCK_DROPS_SECOND_MAIL) {
            return;
        }
        if (strncmp(line, "RCPT", 4) == 0 && mock->behaviour == MOCK_DROPS_AT_RCPT) {
            return;
        }
        if (strncmp(line, "QUIT", 4) == 0 && mock->behaviour == MOCK_SILENT_AT_QUIT) {
            fall_silent(mock, client);
            return;
        }
        if (mock->refuses != NULL && strncmp(line, mock->refuses, strlen(mock->refuses)) == 0) {
            say(client, "554 not you\r\n");
        } else if (strncmp(line, "EHLO", 4) == 0) {
            say(client, "250-mock.test\r\n250 STARTTLS\r\n");
        } else if (strncmp(line, "DATA", 4) != 0) {
            say(client, "250 fine\r\n");
        } else if (!mock_data(mock, client)) {
            return;
        }
    }
}

static void *APR_THREAD_FUNC mock_main(apr_thread_t *thread, void *data)
{
    mock_t *mock = data;
    int socket;

    (void)thread;
    while ((socket = accept(mock->listener, NULL, NULL)) >= 0) {
        FILE *client = fdopen(socket, "r+");

        apr_atomic_inc32(&mock->connections);
        mock_session(mock, client);
        fclose(client);
    }
    return NULL;
}

static mock_t *start_mock(mock_behaviour_t behaviour, apr_pool_t *p)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    mock_t *mock = apr_pcalloc(p, sizeof *mock);

    mock->behaviour = behaviour;
    mock->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(mock->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(mock->listener, 5) != 0 ||
        getsockname(mock->listener, (struct sockaddr *)&address, &length) != 0) {
        perror("# mock");
    }
    mock->port = ntohs(address.sin_port);
    apr_thread_create(&mock->thread, NULL, mock_main, mock, p);
    return mock;
}

/* Call it after the mailer's pool is destroyed: an open connection would keep the thread alive. */
static void end_mock(mock_t *mock)
{
    apr_status_t rv;

    shutdown(mock->listener, SHUT_RDWR);
    apr_thread_join(&rv, mock->thread);
    close(mock->listener);
}

static int mock_is_silent(void *baton)
{
    mock_t *mock = baton;

    return apr_atomic_read32(&mock->silent) != 0;
}

/* Sends a number of messages to a mock; returns the last outcome. */
static mdl_mail_outcome_t send_to_mock(mock_t *mock, int count, const char **detail, apr_pool_t *p)
{
    mdl_mail_config_t config = config_of(url("smtp", mock->port, p), mock->refuses != NULL
                                                                         ? MDL_MAIL_TLS_REQUIRED
                                                                         : MDL_MAIL_TLS_OFF);
    mdl_mail_outcome_t outcome = MDL_MAIL_FAILED;
    mdl_mailer_t *mailer;
    apr_pool_t *own;

    config.stopped = mock_is_silent;
    config.baton = mock;
    apr_pool_create(&own, p);
    mailer = mailer_of(&config, own);
    for (int i = 0; i < count; i++) {
        outcome = send_to(mailer, TO, detail, p);
    }
    apr_pool_destroy(own);
    end_mock(mock);
    return outcome;
}

static void smtp_broken(apr_pool_t *p)
{
    mock_t *mock = start_mock(MOCK_DROPS_AT_RCPT, p);
    const char *detail;

    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_LATER,
           "a connection dropped before the reply to RCPT gives MDL_MAIL_LATER");
    mock = start_mock(MOCK_DROPS_AFTER_MESSAGE, p);
    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_UNKNOWN,
           "a connection dropped after the final dot gives MDL_MAIL_UNKNOWN");
    ok(detail && strstr(detail, "ended before"), "the detail names the reason");
    mock = start_mock(MOCK_DROPS_SECOND_MAIL, p);
    is_int(send_to_mock(mock, 2, &detail, p), MDL_MAIL_SENT,
           "a kept connection that was dropped is replaced by a new one");
    is_int(mock->connections, 2, "two connections were made");
    is_int(mock->messages, 2, "each message arrived once");
    mock = start_mock(MOCK_SAYS_MUCH, p);
    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_FAILED,
           "a long reply of 550 gives MDL_MAIL_FAILED");
    ok(detail && strncmp(detail, "550 last ?[31m?? xxx", 20) == 0 && strlen(detail) <= 500,
       "its last line is kept, printable and truncated");
}

static void smtp_refused_before_message(apr_pool_t *p)
{
    static const char *const refused[] = {"", "EHLO", "STARTTLS"};
    const char *detail;

    for (apr_size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mock_t *mock = start_mock(MOCK_SAYS_MUCH, p);

        mock->refuses = refused[i];
        is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_LATER,
               apr_psprintf(p, "554 at %s gives MDL_MAIL_LATER",
                            *refused[i] != '\0' ? refused[i] : "the greeting"));
    }
}

static void smtp_stopped(apr_pool_t *p)
{
    mock_t *mock = start_mock(MOCK_SILENT_FROM_START, p);
    apr_time_t begin = apr_time_now();
    const char *detail;

    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_LATER,
           "being stopped before the server's greeting gives MDL_MAIL_LATER");
    ok(detail && strstr(detail, "stopped"), "the detail names the reason");
    mock = start_mock(MOCK_STOPS_AT_DATA, p);
    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_LATER,
           "being stopped before the message goes out gives MDL_MAIL_LATER");
    is_int(mock->messages, 0, "and the server gets none of it");
    /* Otherwise one takes half a minute, the other ten. */
    ok(apr_time_now() - begin < apr_time_from_sec(25), "both take only seconds");
    mock = start_mock(MOCK_SLOW_AFTER_MESSAGE, p);
    is_int(send_to_mock(mock, 1, &detail, p), MDL_MAIL_SENT,
           "a message that the server takes while the mailer is stopped is sent");
}

static void smtp_silent_at_quit(apr_pool_t *p)
{
    mock_t *mock = start_mock(MOCK_SILENT_AT_QUIT, p);
    mdl_mail_config_t config = config_of(url("smtp", mock->port, p), MDL_MAIL_TLS_OFF);
    apr_time_t begin = apr_time_now();
    const char *detail;
    apr_pool_t *own;

    config.stopped = mock_is_silent;
    config.baton = mock;
    apr_pool_create(&own, p);
    is_int(send_to(mailer_of(&config, own), TO, &detail, p), MDL_MAIL_SENT, "a message is sent");
    apr_atomic_set32(&mock->silent, 1);
    apr_pool_destroy(own);
    end_mock(mock);
    ok(apr_time_now() - begin < apr_time_from_sec(25),
       "a stopped mailer does not wait for a server's reply to QUIT");
}

static void smtp_no_listener(apr_pool_t *p)
{
    mock_t *mock = start_mock(MOCK_SILENT_FROM_START, p);
    mdl_mail_config_t config = config_of(url("smtp", mock->port, p), MDL_MAIL_TLS_OFF);
    const char *detail;

    end_mock(mock);
    is_int(send_to(mailer_of(&config, p), TO, &detail, p), MDL_MAIL_LATER,
           "a port without a listener gives MDL_MAIL_LATER");
    ok(detail && strncmp(detail, "No SMTP transfer: ", 18) == 0, "the detail names the reason");
    is_int(mdl_mailer_check(mailer_of(&config, p), "shop@example.com", &detail, p), APR_EGENERAL,
           "the check of a port without a listener fails");
    ok(detail != NULL, "it has a reason");
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    peer_t peer = {0};

    if (!begin_folder(p)) {
        return tap_end(p);
    }
    if (ok(start_peer(&peer, p), "a real SMTP server starts (python3-aiosmtpd, openssl)")) {
        smtp_plain(&peer, p);
        smtp_answers(&peer, p);
        smtp_utf8(&peer, p);
        smtp_refusals(&peer, p);
        smtp_tls(&peer, p);
        smtp_clear(&peer, p);
        end_peer(&peer);
    }
    smtp_broken(p);
    smtp_refused_before_message(p);
    smtp_stopped(p);
    smtp_silent_at_quit(p);
    smtp_no_listener(p);
    remove_tree(folder);
    return tap_end(p);
}
