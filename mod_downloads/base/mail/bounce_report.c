#include "base/mail/bounce_report.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/mail/mime.h"

#define ADDRESSES_MAX 50
#define REASON_MAX    500
#define VALUE_MAX     4096
#define BOUNDARY_MAX  70 /* RFC 2046 section 5.1.1 */
#define DEPTH_MAX     4  /* of multiparts in multiparts */

/* A part of the message; at moves forward as it is read. */
typedef struct {
    const char *at;
    const char *end;
} text_t;

/* A header field, unfolded; valid until the next one is read. */
typedef struct {
    const char *name;
    apr_size_t name_length;
    const char *value;
    char *buffer; /* of VALUE_MAX + 1 bytes, which value points into */
} field_t;

/* The header of a message or part. */
typedef struct {
    const char *content_type;
    const char *encoding;
    int null_sender;
    int mail_system; /* it says that it is from a mail server */
    int automatic_reply;
} header_t;

/* The evidence of a failure in a message's bodies. */
typedef struct {
    int has_status;
    const char *status;   /* the reason in a delivery status, or NULL */
    const char *definite; /* the first line that certainly reports a failure, or NULL */
    const char *code;     /* the first line with a failure code, or NULL */
    int delay;            /* a text says that the server will retry */
} evidence_t;

/* Reads the next line, without its end; 0 when there is none. */
static int text_next_line(text_t *text, text_t *line)
{
    const char *end;

    if (text->at >= text->end) {
        return 0;
    }
    end = memchr(text->at, '\n', (apr_size_t)(text->end - text->at));
    line->at = text->at;
    line->end = end != NULL ? end : text->end;
    text->at = end != NULL ? end + 1 : text->end;
    if (line->end > line->at && line->end[-1] == '\r') {
        line->end--;
    }
    return 1;
}

static apr_size_t text_length(const text_t *text)
{
    return (apr_size_t)(text->end - text->at);
}

static int text_begins_with(const text_t *text, const char *with)
{
    return text_length(text) >= strlen(with) && strncasecmp(text->at, with, strlen(with)) == 0;
}

/* Appends a line to a value of at most VALUE_MAX bytes; all but printable ASCII becomes "?". */
static void value_append(char *value, apr_size_t *length, const text_t *line)
{
    for (const char *c = line->at; c < line->end && *length < VALUE_MAX; c++) {
        char clean = *c == '\t' ? ' ' : *c;

        value[(*length)++] = (char)(clean < 0x20 || clean > 0x7E ? '?' : clean);
    }
    value[*length] = '\0';
}

/* Reads a header field with its folded lines; 0 at the end of the header. */
static int field_next(text_t *text, field_t *field)
{
    apr_size_t length = 0;
    char *value = field->buffer;
    const char *colon;
    text_t line;

    if (!text_next_line(text, &line) || text_length(&line) == 0) {
        return 0;
    }
    colon = memchr(line.at, ':', text_length(&line));
    field->name = line.at;
    field->name_length = colon != NULL ? (apr_size_t)(colon - line.at) : 0;
    line.at = colon != NULL ? colon + 1 : line.end;
    value_append(value, &length, &line);
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t')) {
        text_next_line(text, &line);
        value_append(value, &length, &line);
    }
    while (length > 0 && value[length - 1] == ' ') {
        value[--length] = '\0';
    }
    field->value = value + strspn(value, " ");
    return 1;
}

static int field_is(const field_t *field, const char *name)
{
    return field->name_length == strlen(name) &&
           strncasecmp(field->name, name, field->name_length) == 0;
}

static int text_has(const text_t *text, const char *phrase)
{
    apr_size_t length = strlen(phrase);

    for (const char *c = text->at; c + length <= text->end; c++) {
        if (strncasecmp(c, phrase, length) == 0) {
            return 1;
        }
    }
    return 0;
}

static int value_has(const char *value, const char *phrase)
{
    const text_t text = {value, value + strlen(value)};

    return text_has(&text, phrase);
}

static int field_is_recipient(const field_t *field)
{
    static const char *const names[] = {"Delivered-To", "X-Original-To", "Envelope-To", "To",
                                        "Return-Path"};

    for (apr_size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (field_is(field, names[i])) {
            return 1;
        }
    }
    return 0;
}

static void addresses_add(apr_array_header_t *addresses, const char *value, apr_pool_t *p)
{
    static const char around[] = " ,;:<>()[]\"";

    while (*value && addresses->nelts < ADDRESSES_MAX) {
        apr_size_t length = strcspn(value, around);
        const char *word = apr_pstrmemdup(p, value, length);

        if (mdl_mime_address_valid(word)) {
            APR_ARRAY_PUSH(addresses, const char *) = word;
        }
        value += length;
        value += strspn(value, around);
    }
}

static void header_read(text_t *text, header_t *header, apr_array_header_t *addresses,
                        apr_pool_t *p)
{
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    if (text_begins_with(text, "From ")) {
        text_t from;

        text_next_line(text, &from);
        header->null_sender = text_begins_with(&from, "From MAILER-DAEMON") ||
                              text_begins_with(&from, "From <>");
    }
    while (field_next(text, &field)) {
        if (addresses != NULL && field_is_recipient(&field)) {
            addresses_add(addresses, field.value, p);
        }
        if (field_is(&field, "Return-Path")) {
            int daemon = strncasecmp(field.value, "<MAILER-DAEMON", 14) == 0;

            header->null_sender = daemon || strncmp(field.value, "<>", 2) == 0;
            header->mail_system |= daemon;
        } else if (field_is(&field, "Content-Type") && header->content_type == NULL) {
            header->content_type = apr_pstrdup(p, field.value);
        } else if (field_is(&field, "Content-Transfer-Encoding")) {
            header->encoding = apr_pstrdup(p, field.value);
        } else if (field_is(&field, "X-Failed-Recipients")) {
            header->mail_system = 1;
        } else if (field_is(&field, "From")) {
            header->mail_system |= value_has(field.value, "MAILER-DAEMON") ||
                                   value_has(field.value, "postmaster@");
        } else if (field_is(&field, "Auto-Submitted")) {
            header->automatic_reply = strncasecmp(field.value, "auto-replied", 12) == 0;
        }
    }
}

/* The boundary of a multipart's Content-Type, or NULL. */
static const char *report_boundary(const char *type, apr_pool_t *p)
{
    const char *at = type;
    apr_size_t length;

    if (type == NULL || strncasecmp(type, "multipart/", 10) != 0) {
        return NULL;
    }
    while ((at = strchr(at, ';')) != NULL) {
        at++;
        at += strspn(at, " ");
        if (strncasecmp(at, "boundary=", 9) == 0) {
            at += 9;
            length = *at == '"' ? strcspn(++at, "\"") : strcspn(at, "; ");
            return length > 0 && length <= BOUNDARY_MAX ? apr_pstrmemdup(p, at, length) : NULL;
        }
    }
    return NULL;
}

/* Reads the next part between boundaries; 0 after the last. */
static int part_next(text_t *text, const char *boundary, text_t *part)
{
    apr_size_t length = strlen(boundary);
    text_t line;

    part->at = text->at;
    while (text_next_line(text, &line)) {
        if (text_length(&line) >= length + 2 && memcmp(line.at, "--", 2) == 0 &&
            memcmp(line.at + 2, boundary, length) == 0) {
            part->end = line.at;
            if (text_length(&line) >= length + 4 && memcmp(line.at + 2 + length, "--", 2) == 0) {
                text->at = text->end;
            }
            return 1;
        }
    }
    part->end = text->end;
    return part->at < part->end;
}

/* Reads the fields of one recipient; returns why its delivery failed, or NULL when it did not. */
static const char *recipient_failure(text_t *text, apr_pool_t *p)
{
    const char *action = NULL;
    const char *status = "";
    const char *diagnosis = "";
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    while (field_next(text, &field)) {
        if (field_is(&field, "Action")) {
            action = apr_pstrdup(p, field.value);
        } else if (field_is(&field, "Status")) {
            status = apr_pstrmemdup(p, field.value, strcspn(field.value, " ("));
        } else if (field_is(&field, "Diagnostic-Code")) {
            const char *type = strchr(field.value, ';');

            diagnosis = apr_pstrdup(p,
                                    type != NULL ? type + 1 + strspn(type + 1, " ") : field.value);
        }
    }
    if (action != NULL ? strncasecmp(action, "failed", 6) != 0 : *status != '5') {
        return NULL;
    }
    if (!*diagnosis) {
        return apr_pstrcat(p, "Status ", *status ? status : "unknown", NULL);
    }
    return strstr(diagnosis, status) != NULL ? diagnosis
                                             : apr_pstrcat(p, status, " ", diagnosis, NULL);
}

/* --- transfer encodings (RFC 2045 section 6) --- */

static int digit_value(char c, const char *digits)
{
    const char *found = c != '\0' ? strchr(digits, c) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* Characters that are not base64 digits are skipped. */
static char *base64_decode(const text_t *body, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    apr_uint32_t bits = 0;
    int count = 0;

    for (const char *c = body->at; c < body->end; c++) {
        int value = digit_value(*c, digits);

        if (value >= 0) {
            bits = bits << 6 | (apr_uint32_t)value;
            count += 6;
        }
        if (value >= 0 && count >= 8) {
            count -= 8;
            *to++ = (char)(bits >> count & 0xff);
        }
    }
    return to;
}

static char *quoted_printable_decode(const text_t *body, char *to)
{
    static const char digits[] = "0123456789ABCDEF";

    for (const char *c = body->at; c < body->end; c++) {
        int high = c + 2 < body->end ? digit_value((char)apr_toupper(c[1]), digits) : -1;
        int low = high >= 0 ? digit_value((char)apr_toupper(c[2]), digits) : -1;
        const char *rest = c + 1 < body->end && c[1] == '\r' ? c + 2 : c + 1;

        if (*c == '=' && low >= 0) {
            *to++ = (char)(high << 4 | low);
            c += 2;
        } else if (*c == '=' && rest < body->end && *rest == '\n') {
            c = rest;
        } else {
            *to++ = *c;
        }
    }
    return to;
}

static text_t body_decoded(const text_t *body, const char *encoding, apr_pool_t *p)
{
    char *(*decode)(const text_t *body, char *to) = NULL;
    char *to;

    if (encoding != NULL && strncasecmp(encoding, "base64", 6) == 0) {
        decode = base64_decode;
    } else if (encoding != NULL && strncasecmp(encoding, "quoted-printable", 16) == 0) {
        decode = quoted_printable_decode;
    }
    if (decode == NULL) {
        return *body;
    }
    to = apr_palloc(p, text_length(body) + 1);
    return (text_t){to, decode(body, to)};
}

/* --- bodies --- */

/* Whether a line has a status of class 5 (RFC 3463) or a 55x reply (RFC 5321). */
static int line_names_failure(const text_t *line)
{
    for (const char *c = line->at; c + 3 <= line->end; c++) {
        const char *rest = c + 3;

        if (*c != '5' || (c > line->at && (apr_isalnum(c[-1]) || c[-1] == '.'))) {
            continue;
        }
        if (c[1] == '5' && apr_isdigit(c[2]) &&
            (rest == line->end || *rest == ' ' || *rest == '-')) {
            return 1;
        }
        if (c[1] == '.' && apr_isdigit(c[2])) {
            while (rest < line->end && apr_isdigit(*rest)) {
                rest++;
            }
            if (rest + 1 < line->end && *rest == '.' && apr_isdigit(rest[1])) {
                return 1;
            }
        }
    }
    return 0;
}

/* Whether a line begins the returned message, or is a server's separator before it. */
static int line_begins_returned(const text_t *line)
{
    static const char *const begins[] = {"Received:",
                                         "Return-Path:",
                                         "Message-ID:",
                                         "Auto-Submitted:",
                                         "--- Below this line is a copy of the message",
                                         "------ This is a copy of ",
                                         "   ----- Original message",
                                         "----- Original message",
                                         "   ----- Message header follows"};

    for (apr_size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (text_begins_with(line, begins[i])) {
            return 1;
        }
    }
    return 0;
}

/* Phrases of sendmail, qmail, Exim, Exchange, Google, Courier, OpenSMTPD and others.  None of them
   occurs in a notice of delay. */
static int line_is_definite(const text_t *line)
{
    static const char *const phrases[] = {"permanent error",
                                          "permanent fatal error",
                                          "failed permanently",
                                          "delivery has failed",
                                          "recipients failed",
                                          "did not reach",
                                          "could not be delivered to",
                                          "couldn't be delivered",
                                          "cannot be delivered",
                                          "unable to deliver",
                                          "wasn't able to deliver",
                                          "attempting to deliver a message for",
                                          "undeliverable",
                                          "not going to try again",
                                          "given up",
                                          "will be deleted from queue",
                                          "user unknown",
                                          "unknown user",
                                          "no such user"};

    for (apr_size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        if (text_has(line, phrases[i])) {
            return 1;
        }
    }
    return 0;
}

static int line_tells_delay(const text_t *line)
{
    return text_has(line, "will be retried") || text_has(line, "will keep trying") ||
           text_has(line, "warning message only") || text_has(line, "not yet been delivered") ||
           text_has(line, "is delayed") || text_has(line, "has been delayed");
}

static const char *line_text(const text_t *line, apr_pool_t *p)
{
    char value[VALUE_MAX + 1];
    apr_size_t length = 0;

    value_append(value, &length, line);
    return apr_pstrdup(p, value + strspn(value, " "));
}

static void text_read(text_t text, evidence_t *evidence, apr_pool_t *p)
{
    text_t line;

    while (text_next_line(&text, &line) && !line_begins_returned(&line)) {
        if (evidence->code == NULL && line_names_failure(&line)) {
            evidence->code = line_text(&line, p);
        }
        if (evidence->definite == NULL && line_is_definite(&line)) {
            evidence->definite = line_text(&line, p);
        }
        evidence->delay |= line_tells_delay(&line);
    }
}

static void body_read(text_t body, const header_t *header, int depth, evidence_t *evidence,
                      apr_pool_t *p);

/* Returns whether the body has any parts between boundaries. */
static int parts_read(text_t body, const char *boundary, int depth, evidence_t *evidence,
                      apr_pool_t *p)
{
    int found = 0;
    text_t part;

    /* The text before the first boundary is no part. */
    part_next(&body, boundary, &part);
    while (!evidence->has_status && part_next(&body, boundary, &part)) {
        header_t header = {0};

        header_read(&part, &header, NULL, p);
        body_read(part, &header, depth + 1, evidence, p);
        found = 1;
    }
    return found;
}

static int type_is(const char *type, const char *is)
{
    return strncasecmp(type, is, strlen(is)) == 0;
}

static void body_read(text_t body, const header_t *header, int depth, evidence_t *evidence,
                      apr_pool_t *p)
{
    const char *type = header->content_type != NULL ? header->content_type : "text/plain";
    const char *boundary = report_boundary(type, p);

    if (boundary != NULL &&
        (depth == DEPTH_MAX || parts_read(body, boundary, depth, evidence, p))) {
        return;
    }
    body = body_decoded(&body, header->encoding, p);
    if (type_is(type, "message/delivery-status") ||
        type_is(type, "message/global-delivery-status")) {
        evidence->has_status = 1;
        while (evidence->status == NULL && body.at < body.end) {
            evidence->status = recipient_failure(&body, p);
        }
    } else if (boundary != NULL ||
               (type_is(type, "text/") && !type_is(type, "text/rfc822-headers"))) {
        text_read(body, evidence, p);
    }
}

/* A definite phrase outweighs the signs against a failure: Exim's and Google's failures call
   themselves automatic replies, and sendmail's mention earlier delays. */
static const char *failure_reason(const header_t *header, const evidence_t *evidence)
{
    const char *words = evidence->code != NULL ? evidence->code : evidence->definite;

    if (evidence->has_status) {
        return evidence->status;
    }
    if (evidence->definite != NULL &&
        (header->mail_system || (header->null_sender && !header->automatic_reply))) {
        return words;
    }
    return header->null_sender && !header->automatic_reply && !evidence->delay ? evidence->code
                                                                               : NULL;
}

void mdl_bounce_report_read(mdl_bounce_report_t *report, const char *message, apr_size_t length,
                            apr_pool_t *p)
{
    text_t text = {message, message + length};
    evidence_t evidence = {0};
    header_t header = {0};
    const char *reason;
    apr_pool_t *ptemp;

    report->addresses = apr_array_make(p, 4, sizeof(const char *));
    apr_pool_create(&ptemp, p);
    apr_pool_tag(ptemp, "mdl_bounce_report_read");
    header_read(&text, &header, report->addresses, p);
    body_read(text, &header, 0, &evidence, ptemp);
    reason = failure_reason(&header, &evidence);
    report->reason = reason != NULL ? apr_pstrndup(p, reason, REASON_MAX) : NULL;
    apr_pool_destroy(ptemp);
}
