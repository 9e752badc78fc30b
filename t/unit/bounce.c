/*
 * Bounces: which email a report is about, and whether it says that the email was not delivered.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/mail/bounce_report.h"
#include "core/order/bounce.h"
#include "core/settings/settings.h"

#define HEAD                                                                                       \
    "Return-Path: <>\nX-Original-To: shop+token@example.com\nDelivered-To: box@example.com\n"      \
    "From: MAILER-DAEMON@mx.test (Mail Delivery System)\nTo: shop+token@example.com\n"             \
    "Auto-Submitted: auto-replied\nMIME-Version: 1.0\n"                                            \
    "Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"AB/mx.test\"\n\n"
#define REPORT(fields)                                                                             \
    HEAD "This is a MIME-encapsulated message.\n\n--AB/mx.test\nContent-Type: text/plain\n\n"      \
         "I'm sorry.  5.9.9 is what I say here.\n\n--AB/mx.test\n"                                 \
         "Content-Description: Delivery report\nContent-Type: message/delivery-status\n\n"         \
         "Reporting-MTA: dns; mx.test\nArrival-Date: Sat, 21 Nov 2026 07:00:00 +0000\n\n" fields   \
         "\n--AB/mx.test\nContent-Type: message/rfc822\n\nReceived: by x\nSubject: App 5.2.1\n\n"  \
         "text\n\n--AB/mx.test--\n"
#define PLAIN(header, body)                                                                        \
    "Return-Path: <>\nDelivered-To: shop+token@example.com\n" header "\n" body

#define DAEMON(body)                                                                               \
    "Return-Path: <MAILER-DAEMON@mx.test>\nTo: shop+token@example.com\n"                           \
    "From: Mail Delivery Subsystem <MAILER-DAEMON@mx.test>\n\n" body
#define AUTOMATIC(header, body)                                                                    \
    PLAIN("Auto-Submitted: auto-replied\nFrom: Mail Delivery System "                              \
          "<Mailer-Daemon@mx.test>\n" header,                                                      \
          body)

static const struct {
    const char *name;
    const char *message;
    const char *reason; /* NULL: no failure */
} messages[] = {
    {"a failure with the server's reply",
     REPORT("Final-Recipient: rfc822; a@b.test\nAction: failed\nStatus: 5.1.1\n"
            "Remote-MTA: dns; mx.b.test\nDiagnostic-Code: smtp; 550 5.1.1 <a@b.test>:\n"
            "    no such user\n"),
     "550 5.1.1 <a@b.test>:    no such user"},
    {"a failure whose diagnostic code has no status",
     REPORT("Action: failed\nStatus: 5.2.2 (full)\nDiagnostic-Code: X-Unix; mailbox is full\n"),
     "5.2.2 mailbox is full"},
    {"a failure without a diagnostic code", REPORT("Action: failed\nStatus: 5.0.0\n"),
     "Status 5.0.0"},
    {"field names and values in another case", REPORT("ACTION: Failed\nSTATUS: 5.7.1\n"),
     "Status 5.7.1"},
    {"a temporary status, after which the server gave up",
     REPORT("Action: failed\nStatus: 4.4.1\nDiagnostic-Code: x; no connection\n"),
     "4.4.1 no connection"},
    {"a failure for the second recipient",
     REPORT("Action: delivered\nStatus: 2.0.0\n\nAction: failed\nStatus: 5.1.2\n"), "Status 5.1.2"},
    {"status 5 without an action", REPORT("Status: 5.1.1\n"), "Status 5.1.1"},
    {"status 4 without an action", REPORT("Status: 4.1.1\n"), NULL},
    {"a delay", REPORT("Action: delayed\nStatus: 4.4.1\nDiagnostic-Code: smtp; 451 later\n"), NULL},
    {"a delay with status 5.0.0", REPORT("Action: delayed\nStatus: 5.0.0\n"), NULL},
    {"a successful delivery", REPORT("Action: delivered\nStatus: 2.0.0\n"), NULL},
    {"a relayed message", REPORT("Action: relayed\nStatus: 2.0.0\n"), NULL},
    {"an empty report", REPORT(""), NULL},
    {"control and non-ASCII characters in the diagnostic code",
     REPORT("Action: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 5.1.1 \x1b[2J\xC3\xA9\n"),
     "5.1.1 ?[2J??"},
    {"qmail's failure notice",
     PLAIN("From: MAILER-DAEMON@q.test\nSubject: failure notice\n",
           "Hi. This is the qmail-send program.\n\n<a@b.test>:\n"
           "192.0.2.1 does not like recipient.\nRemote host said: 550 no such user\n"),
     "Remote host said: 550 no such user"},
    {"a status in plain text", PLAIN("", "a@b.test: #5.1.1 no such user\n"),
     "a@b.test: #5.1.1 no such user"},
    {"a temporary status in plain text", PLAIN("", "warning: 4.4.1, will try for 5 days\n"), NULL},
    {"a version number in the returned message",
     PLAIN("", "Your message is late.\n\nReceived: by mx.test\nSubject: App 5.2.1\n\n550 pages\n"),
     NULL},
    {"numbers that are not a status", PLAIN("", "15.1.1 1550 5.a.1 5.1. 555.1 v5.1.1\n"), NULL},
    {"an automatic reply",
     PLAIN("Auto-Submitted: auto-replied (vacation)\n", "I am away. 5.1.1 550 \n"), NULL},
    {"a reply from a person",
     "Return-Path: <a@b.test>\nTo: shop+token@example.com\n\nI got error 550 5.1.1 today\n", NULL},
    {"a failure in mbox format",
     "From MAILER-DAEMON  Sat Nov 21 07:25:25 2026\nTo: shop+token@example.com\n\n550 no\n",
     "550 no"},
    {"a reply in mbox format", "From a@b.test  Sat Nov 21\nTo: shop+token@example.com\n\n550 no\n",
     NULL},
    {"sendmail's text, from its own MAILER-DAEMON",
     DAEMON("The original message was received at Sat, 21 Nov 2026 07:00:00 GMT\n\n"
            "   ----- The following addresses had permanent fatal errors -----\n<a@b.test>\n"
            "    (reason: 550 5.1.1 <a@b.test>... User unknown)\n\n"
            "   ----- Transcript of session follows -----\n... while talking to b.test.:\n"),
     "(reason: 550 5.1.1 <a@b.test>... User unknown)"},
    {"sendmail's, that gave up after delays",
     DAEMON("   ----- The following addresses had permanent fatal errors -----\n<a@b.test>\n\n"
            "   ----- Transcript of session follows -----\n"
            "<a@b.test>... Deferred: Connection timed out with b.test.\n"
            "Message could not be delivered for 5 days\nMessage will be deleted from queue\n"),
     "----- The following addresses had permanent fatal errors -----"},
    {"sendmail's warning of a delay",
     DAEMON(
         "    **********************************************\n"
         "    **      THIS IS A WARNING MESSAGE ONLY      **\n"
         "    **********************************************\n"
         "   ----- Transcript of session follows -----\n<a@b.test>... Deferred: 550 5.7.1 later\n"
         "Warning: message still undelivered after 4 hours\n"
         "Will keep trying until message is 5 days old\n"),
     NULL},
    {"qmail's, that gave up after a week",
     PLAIN("From: MAILER-DAEMON@q.test\n",
           "Hi. This is the qmail-send program at q.test.\n"
           "I'm afraid I wasn't able to deliver your message to the following addresses.\n\n"
           "<a@b.test>:\nI'm not going to try again; this message has been in the queue too long.\n"
           "--- Below this line is a copy of the message.\n\n550 5.1.1\n"),
     "I'm afraid I wasn't able to deliver your message to the following addresses."},
    {"Exim's text, which calls itself an automatic reply",
     AUTOMATIC("X-Failed-Recipients: a@b.test\n",
               "This message was created automatically by mail delivery software.\n\n"
               "A message that you sent could not be delivered to one or more of its\n"
               "recipients. This is a permanent error. The following address(es) failed:\n\n"
               "  a@b.test\n    host mx.b.test [192.0.2.1]\n"
               "    SMTP error from remote mail server after RCPT TO:<a@b.test>:\n"
               "    550 No such user here\n\n"
               "------ This is a copy of the message, including all the headers. ------\n"),
     "550 No such user here"},
    {"Exim's, without a code",
     AUTOMATIC("X-Failed-Recipients: a@b.test\n",
               "A message that you sent could not be delivered to one or more of its\nrecipients.\n"
               "  a@b.test\n    Unrouteable address\n"),
     "A message that you sent could not be delivered to one or more of its"},
    {"Exim's warning of a delay",
     AUTOMATIC("", "A message that you sent has not yet been delivered to one or more of its\n"
                   "recipients after more than 24 hours on the queue on mx.test.\n"
                   "Delivery attempts will continue for some time.  Eventually the mail delivery\n"
                   "software will give up, and the message will be returned to you.\n"),
     NULL},
    {"Google's text",
     AUTOMATIC("", "Delivery to the following recipient failed permanently:\n\n     a@b.test\n\n"
                   "Technical details of permanent failure: \n"
                   "The error that the other server returned was: 550 550 5.1.1 unknown.\n\n"
                   "----- Original message -----\n"),
     "The error that the other server returned was: 550 550 5.1.1 unknown."},
    {"Google's text of a delay",
     AUTOMATIC("", "THIS IS A WARNING MESSAGE ONLY.\nDelivery to the following recipient has been "
                   "delayed:\n\n a@b.test\n\nMessage will be retried for 1 more day(s)\n"),
     NULL},
    {"Exchange's text",
     "Return-Path: <postmaster@x.test>\nFrom: postmaster@x.test\nTo: shop+token@example.com\n\n"
     "Your message\n\n  To:      a@b.test\n  Subject: x\n\ndid not reach the following "
     "recipient(s):\n\na@b.test on Sat, 21 Nov 2026\n    The recipient name is not recognized\n",
     "did not reach the following recipient(s):"},
    {"Courier's text",
     DAEMON(
         "This is a delivery status notification from mx.test,\nrunning the Courier mail server.\n"
         "                           UNDELIVERABLE MAIL\n\n"
         "Your message to the following recipients cannot be delivered:\n\n<a@b.test>:\n"
         "    b.test [192.0.2.1]:\n>>> RCPT TO:<a@b.test>\n<<< 550 User unknown.\n"),
     "<<< 550 User unknown."},
    {"OpenSMTPD's text",
     DAEMON("    Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this email.\n\n"
            "    An error has occurred while attempting to deliver a message for\n"
            "    the following list of recipients:\n\na@b.test: 550 Invalid recipient\n"),
     "a@b.test: 550 Invalid recipient"},
    {"OpenSMTPD's text of a delay",
     DAEMON("    Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this email.\n\n"
            "    A message is delayed for more than 4 hours for the following\n    list of "
            "recipients:\n\na@b.test: 450 4.2.0 Greylisted\n"),
     NULL},
    {"an automatic reply that quotes the words of a failure",
     PLAIN("Auto-Submitted: auto-replied\nFrom: a@b.test\n",
           "I am away. What is urgent could not be delivered to me: 550 5.1.1\n"),
     NULL},
    {"a delivery status in base64",
     HEAD "--AB/mx.test\nContent-Type: message/delivery-status\n"
          "Content-Transfer-Encoding: base64\n\n"
          "UmVwb3J0aW5nLU1UQTogZG5zOyBteC50ZXN0CgpGaW5hbC1SZWNpcGllbnQ6IHJmYzgyMjsgYUBi\n"
          "LnRlc3QKQWN0aW9uOiBmYWlsZWQKU3RhdHVzOiA1LjEuMQpEaWFnbm9zdGljLUNvZGU6IHNtdHA7\n"
          "IDU1MCA1LjEuMSBubyBzdWNoIHVzZXIK\n\n--AB/mx.test--\n",
     "550 5.1.1 no such user"},
    {"one in quoted-printable",
     HEAD "--AB/mx.test\nContent-Transfer-Encoding: Quoted-Printable\n"
          "Content-Type: message/delivery-status\n\n"
          "Reporting-MTA: dns; mx.test\n\nAction: fail=\ned\nStatus: 5.1=2E1\n\n--AB/mx.test--\n",
     "Status 5.1.1"},
    {"one in a report that a gateway has wrapped",
     PLAIN(
         "Content-Type: multipart/mixed; boundary=outer\n",
         "--outer\nContent-Type: multipart/report; boundary=\"in ner\"\n\n--in ner\n"
         "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nAction: failed\n"
         "Status: 5.7.1\n\n--in ner--\n--outer\nContent-Type: text/plain\n\nscanned\n--outer--\n"),
     "Status 5.7.1"},
    {"a text in base64",
     "Return-Path: <>\nTo: shop+token@example.com\nContent-Transfer-Encoding: base64\n\n"
     "YUBiLnRlc3Q6IDU1MCA1LjEuMSBubyBzdWNoIHVzZXIK\n",
     "a@b.test: 550 5.1.1 no such user"},
    {"an empty message", "", NULL},
    {"a header without a line end", "Return-Path: <>", NULL},
};

static void kinds(apr_pool_t *p)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const char *message = messages[i].message;
        char *crlf = apr_palloc(p, strlen(message) * 2 + 1);
        char *end = crlf;
        mdl_bounce_report_t report;

        mdl_bounce_report_read(&report, message, strlen(message), p);
        is_str(report.reason, messages[i].reason, messages[i].name);
        for (const char *c = message; *c != '\0'; c++) {
            if (*c == '\n') {
                *end++ = '\r';
            }
            *end++ = *c;
        }
        mdl_bounce_report_read(&report, crlf, (apr_size_t)(end - crlf), p);
        is_str(report.reason, messages[i].reason, "the same with CRLF line ends");
    }
}

static void addresses(apr_pool_t *p)
{
    static const char message[] =
        "Return-Path: <>\nDelivered-To: one@a.test\nX-Original-To: two@a.test\n"
        "To: \"Name, with comma\" <three@a.test>,\n four@a.test (comment five@a.test)\n"
        "Envelope-To: six@a.test\nCc: no@a.test\nSubject: no@b.test\n\nTo: no@c.test\n";
    static const char *const expected[] = {"one@a.test",  "two@a.test",  "three@a.test",
                                           "four@a.test", "five@a.test", "six@a.test"};
    apr_array_header_t *many = apr_array_make(p, 5000, sizeof(const char *));
    mdl_bounce_report_t report;
    const char *text;

    mdl_bounce_report_read(&report, message, sizeof message - 1, p);
    is_int(report.addresses->nelts, 6, "six recipients are found in five header fields");
    for (int i = 0; i < 6 && i < report.addresses->nelts; i++) {
        is_str(APR_ARRAY_IDX(report.addresses, i, const char *), expected[i],
               "each recipient is found");
    }
    for (int i = 0; i < 5000; i++) {
        APR_ARRAY_PUSH(many, const char *) = "To: a@b.test\n";
    }
    text = apr_array_pstrcat(p, many, 0);
    mdl_bounce_report_read(&report, text, strlen(text), p);
    is_int(report.addresses->nelts, 50, "at most 50 recipients are kept");
}

/* Reads every prefix and random changes of a report, for valgrind and the sanitizers. */
static void damaged(apr_pool_t *p)
{
    static const char whole[] = REPORT("Action: failed\nStatus: 5.1.1\nDiagnostic-Code: x; y\n");
    static const char bytes[] = "\n\r:;- \t\"=5.<>@\0\xff/A";
    const size_t length = sizeof whole - 1;
    int found = 0;

    srand(20261121);
    for (size_t i = 0; i < 4 * length; i++) {
        size_t cut = i < length ? i : length;
        char *message = malloc(cut > 0 ? cut : 1); /* on the heap, where overruns are detected */
        apr_pool_t *own;
        mdl_bounce_report_t report;

        apr_pool_create(&own, p);
        memcpy(message, whole, cut);
        for (size_t j = 0; i >= length && j < 1 + i % 7; j++) {
            message[(size_t)rand() % length] = bytes[(size_t)rand() % (sizeof bytes - 1)];
        }
        mdl_bounce_report_read(&report, message, cut, own);
        found += report.reason != NULL;
        free(message);
        apr_pool_destroy(own);
    }
    ok(found > 0,
       apr_psprintf(p, "%d damaged reports are read, %d of them still report the failure",
                    (int)(4 * length), found));
}

static void reason_is_bounded(apr_pool_t *p)
{
    char *fill = apr_pcalloc(p, 200001);
    const char *message;
    mdl_bounce_report_t report;

    memset(fill, 'x', 200000);
    message = apr_pstrcat(p,
                          HEAD "--AB/mx.test\nContent-Type: message/delivery-status\n\n"
                               "Action: failed\nDiagnostic-Code: smtp; 5.1.1 ",
                          fill, "\n", NULL);
    mdl_bounce_report_read(&report, message, strlen(message), p);
    ok(report.reason && strlen(report.reason) == 500, "at most 500 bytes of the reason are kept");
}

static mdl_secret_t *make_secret(apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *path = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/bounce-XXXXXX", NULL);
    int file = mkstemp(path);
    apr_array_header_t *paths = apr_array_make(p, 1, sizeof(const char *));
    mdl_secret_t *secret = NULL;
    const char *why = NULL;

    APR_ARRAY_PUSH(paths, const char *) = path;
    if (write(file, "a secret that is long enough for the test", 41) == 41) {
        mdl_secret_read(&secret, paths, &why, p);
    }
    close(file);
    unlink(path);
    return secret;
}

static void tokens(apr_pool_t *p)
{
    static const apr_int64_t ids[] = {1, 255, 256, APR_INT64_C(9007199254740991)};
    const mdl_secret_t *secret = make_secret(p);
    int accepted = 0;
    char *address;
    size_t at;

    for (int i = 0; i < 4; i++) {
        address = apr_pstrdup(p, mdl_bounce_address(secret, "shop@example.com", ids[i], p));
        is_int(mdl_bounce_email_id(secret, address), ids[i],
               "the address of a bounce has the email's id");
        for (char *c = address; *c != '\0'; c++) {
            *c = (char)apr_toupper(*c);
        }
        is_int(mdl_bounce_email_id(secret, address), ids[i], "letter case does not matter");
    }
    address = apr_pstrdup(p, mdl_bounce_address(secret, "a+b@example.com", 7, p));
    is_int(mdl_bounce_email_id(secret, address), 7, "the sender's address may contain a \"+\"");
    at = (size_t)(strchr(address, '@') - address);
    for (size_t i = 4; i < at; i++) {
        char was = address[i];

        for (const char *c = "0123456789abcdef+@ "; *c != '\0'; c++) {
            if (*c != was) {
                address[i] = *c;
                accepted += mdl_bounce_email_id(secret, address) != 0;
            }
        }
        address[i] = was;
    }
    is_int(accepted, 0, "a token with one character changed is invalid");
    is_int(mdl_bounce_email_id(secret, "shop@example.com"), 0,
           "an address without a token is invalid");
    is_int(mdl_bounce_email_id(secret, "+@"), 0, "an empty token is invalid");
    is_int(mdl_bounce_email_id(secret, ""), 0, "an empty address is invalid");
    address = apr_pstrcat(
        p, apr_pstrndup(p, "abcdefghijklmnopqrstuvwxyz12345", MDL_MAIL_FROM_LOCAL_MAX),
        "@example.com", NULL);
    address = apr_pstrdup(p, mdl_bounce_address(secret, address, 7, p));
    is_int(strchr(address, '@') - address, 64, "the longest local part has 64 bytes");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    kinds(p);
    addresses(p);
    damaged(p);
    reason_is_bounded(p);
    tokens(p);
    return tap_end(p);
}
