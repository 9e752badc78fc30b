#include "base/mail/bounce_report.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/mail/mime.h"

#define ADDRESSES_MAX 50
#define REASON_MAX    500
#define VALUE_MAX     4096
#define BOUNDARY_MAX  70 /* RFC 2046 section 5.1.1 */

/* A stretch of the message, and what of it is still to be read. */
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

/* What the header of a message says. */
typedef struct {
    const char *content_type;
    int null_sender;
    int automatic_reply;
} header_t;

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

/* Reads a header field with its folded lines; 0 at the end and behind the header's empty line. */
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
        if (field_is_recipient(&field)) {
            addresses_add(addresses, field.value, p);
        }
        if (field_is(&field, "Return-Path")) {
            header->null_sender = strncmp(field.value, "<>", 2) == 0;
        } else if (field_is(&field, "Content-Type") && header->content_type == NULL) {
            header->content_type = apr_pstrdup(p, field.value);
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

/* Reads the next part between boundaries; 0 behind the last. */
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

/* Reads a part that holds a delivery status; 0 when the part holds something else. */
static int part_read_status(text_t *part, const char **reason, apr_pool_t *p)
{
    static const char *const types[] = {"message/delivery-status",
                                        "message/global-delivery-status"};
    int found = 0;
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    while (field_next(part, &field)) {
        for (int i = 0; i < 2 && field_is(&field, "Content-Type"); i++) {
            found |= strncasecmp(field.value, types[i], strlen(types[i])) == 0;
        }
    }
    while (found && *reason == NULL && part->at < part->end) {
        *reason = recipient_failure(part, p);
    }
    return found;
}

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

/* The first header fields of the message that is returned. */
static int line_begins_returned(const text_t *line)
{
    return text_begins_with(line, "Received:") || text_begins_with(line, "Return-Path:") ||
           text_begins_with(line, "Message-ID:") || text_begins_with(line, "Auto-Submitted:");
}

/* The line of a plain text that says why the delivery failed, or NULL. */
static const char *text_failure(text_t *text, apr_pool_t *p)
{
    text_t line;

    while (text_next_line(text, &line) && !line_begins_returned(&line)) {
        if (line_names_failure(&line)) {
            char *value = apr_palloc(p, VALUE_MAX + 1);
            apr_size_t length = 0;

            value_append(value, &length, &line);
            return value + strspn(value, " ");
        }
    }
    return NULL;
}

void mdl_bounce_report_read(mdl_bounce_report_t *report, const char *message, apr_size_t length,
                            apr_pool_t *p)
{
    text_t text = {message, message + length};
    header_t header = {0};
    const char *reason = NULL;
    const char *boundary;
    apr_pool_t *ptemp;
    int has_status = 0;
    text_t part;

    report->addresses = apr_array_make(p, 4, sizeof(const char *));
    apr_pool_create(&ptemp, p);
    apr_pool_tag(ptemp, "mdl_bounce_report_read");
    header_read(&text, &header, report->addresses, p);
    boundary = report_boundary(header.content_type, p);
    if (boundary != NULL) {
        text_t body = text;

        while (!has_status && part_next(&body, boundary, &part)) {
            apr_pool_clear(ptemp);
            has_status = part_read_status(&part, &reason, ptemp);
        }
    }
    if (!has_status && header.null_sender && !header.automatic_reply) {
        reason = text_failure(&text, ptemp);
    }
    report->reason = reason != NULL ? apr_pstrndup(p, reason, REASON_MAX) : NULL;
    apr_pool_destroy(ptemp);
}
