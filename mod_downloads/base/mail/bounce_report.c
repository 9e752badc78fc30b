#include "base/mail/bounce_report.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/mail/mime.h"

#define ADDRESSES_MAX 50
#define WORDS_MAX     500
#define VALUE_MAX     4096
#define BOUNDARY_MAX  70 /* RFC 2046 section 5.1.1 */

/* A part of the message that is still to be read. */
typedef struct {
    const char *at;
    const char *end;
} text_t;

/* A header field, unfolded; good until the next is taken. */
typedef struct {
    const char *name;
    apr_size_t name_length;
    const char *value;
    char *buffer; /* VALUE_MAX + 1 bytes, for value */
} field_t;

/* What the header of a message tells. */
typedef struct {
    const char *content_type;
    int null_sender;
    int automatic_reply;
} header_t;

/** Takes a line without its end; 0 when there is none. */
static int report_next_line(text_t *text, text_t *line)
{
    const char *end;

    if (text->at >= text->end) {
        return 0;
    }
    end = memchr(text->at, '\n', (apr_size_t)(text->end - text->at));
    line->at = text->at;
    line->end = end ? end : text->end;
    text->at = end ? end + 1 : text->end;
    if (line->end > line->at && line->end[-1] == '\r') {
        line->end--;
    }
    return 1;
}

static apr_size_t length_of(const text_t *text)
{
    return (apr_size_t)(text->end - text->at);
}

static int report_begins(const text_t *text, const char *with)
{
    return length_of(text) >= strlen(with) && strncasecmp(text->at, with, strlen(with)) == 0;
}

/** Adds a line to a value of at most VALUE_MAX bytes, with anything but printable ASCII as "?". */
static void report_append(char *value, apr_size_t *length, const text_t *line)
{
    for (const char *c = line->at; c < line->end && *length < VALUE_MAX; c++) {
        char clean = *c == '\t' ? ' ' : *c;

        value[(*length)++] = (char)(clean < 0x20 || clean > 0x7E ? '?' : clean);
    }
    value[*length] = '\0';
}

/** Takes a header field with its folded lines; 0 at the empty line, which is taken, and the end. */
static int next_field(text_t *text, field_t *field)
{
    apr_size_t length = 0;
    char *value = field->buffer;
    const char *colon;
    text_t line;

    if (!report_next_line(text, &line) || length_of(&line) == 0) {
        return 0;
    }
    colon = memchr(line.at, ':', length_of(&line));
    field->name = line.at;
    field->name_length = colon ? (apr_size_t)(colon - line.at) : 0;
    line.at = colon ? colon + 1 : line.end;
    report_append(value, &length, &line);
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t')) {
        report_next_line(text, &line);
        report_append(value, &length, &line);
    }
    while (length > 0 && value[length - 1] == ' ') {
        value[--length] = '\0';
    }
    field->value = value + strspn(value, " ");
    return 1;
}

static int is(const field_t *field, const char *name)
{
    return field->name_length == strlen(name) &&
           strncasecmp(field->name, name, field->name_length) == 0;
}

static int is_recipient(const field_t *field)
{
    static const char *const names[] = {"Delivered-To", "X-Original-To", "Envelope-To", "To",
                                        "Return-Path"};

    for (apr_size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (is(field, names[i])) {
            return 1;
        }
    }
    return 0;
}

static void add_addresses(apr_array_header_t *addresses, const char *value, apr_pool_t *p)
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

static void read_header(text_t *text, header_t *header, apr_array_header_t *addresses,
                        apr_pool_t *p)
{
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    if (report_begins(text, "From ")) {
        text_t from;

        report_next_line(text, &from);
        header->null_sender = report_begins(&from, "From MAILER-DAEMON") ||
                              report_begins(&from, "From <>");
    }
    while (next_field(text, &field)) {
        if (is_recipient(&field)) {
            add_addresses(addresses, field.value, p);
        }
        if (is(&field, "Return-Path")) {
            header->null_sender = strncmp(field.value, "<>", 2) == 0;
        } else if (is(&field, "Content-Type") && !header->content_type) {
            header->content_type = apr_pstrdup(p, field.value);
        } else if (is(&field, "Auto-Submitted")) {
            header->automatic_reply = strncasecmp(field.value, "auto-replied", 12) == 0;
        }
    }
}

/** The boundary of a multipart's type, or NULL. */
static const char *report_boundary_of(const char *type, apr_pool_t *p)
{
    const char *at = type;
    apr_size_t length;

    if (!type || strncasecmp(type, "multipart/", 10) != 0) {
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

/** Takes the next part between boundaries; 0 behind the last. */
static int next_part(text_t *text, const char *boundary, text_t *part)
{
    apr_size_t length = strlen(boundary);
    text_t line;

    part->at = text->at;
    while (report_next_line(text, &line)) {
        if (length_of(&line) >= length + 2 && memcmp(line.at, "--", 2) == 0 &&
            memcmp(line.at + 2, boundary, length) == 0) {
            part->end = line.at;
            if (length_of(&line) >= length + 4 && memcmp(line.at + 2 + length, "--", 2) == 0) {
                text->at = text->end;
            }
            return 1;
        }
    }
    part->end = text->end;
    return part->at < part->end;
}

/** Reads the fields of one recipient; what its failure is said to be, or NULL. */
static const char *failure_of(text_t *text, apr_pool_t *p)
{
    const char *action = NULL;
    const char *status = "";
    const char *said = "";
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    while (next_field(text, &field)) {
        if (is(&field, "Action")) {
            action = apr_pstrdup(p, field.value);
        } else if (is(&field, "Status")) {
            status = apr_pstrmemdup(p, field.value, strcspn(field.value, " ("));
        } else if (is(&field, "Diagnostic-Code")) {
            const char *type = strchr(field.value, ';');

            said = apr_pstrdup(p, type ? type + 1 + strspn(type + 1, " ") : field.value);
        }
    }
    if (action ? strncasecmp(action, "failed", 6) != 0 : *status != '5') {
        return NULL;
    }
    if (!*said) {
        return apr_pstrcat(p, "Status ", *status ? status : "unknown", NULL);
    }
    return strstr(said, status) ? said : apr_pstrcat(p, status, " ", said, NULL);
}

/** Reads a part that holds a delivery status; 0 when it is another one. */
static int report_read_status(text_t *part, const char **words, apr_pool_t *p)
{
    static const char *const types[] = {"message/delivery-status",
                                        "message/global-delivery-status"};
    int found = 0;
    char buffer[VALUE_MAX + 1];
    field_t field = {.buffer = buffer};

    while (next_field(part, &field)) {
        for (int i = 0; i < 2 && is(&field, "Content-Type"); i++) {
            found |= strncasecmp(field.value, types[i], strlen(types[i])) == 0;
        }
    }
    while (found && !*words && part->at < part->end) {
        *words = failure_of(part, p);
    }
    return found;
}

/** Whether a line has a status of the class 5 (RFC 3463) or a reply of 55x (RFC 5321). */
static int names_failure(const text_t *line)
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

static int begins_returned(const text_t *line)
{
    return report_begins(line, "Received:") || report_begins(line, "Return-Path:") ||
           report_begins(line, "Message-ID:") || report_begins(line, "Auto-Submitted:");
}

static const char *words_of_text(text_t *text, apr_pool_t *p)
{
    text_t line;

    while (report_next_line(text, &line) && !begins_returned(&line)) {
        if (names_failure(&line)) {
            char *value = apr_palloc(p, VALUE_MAX + 1);
            apr_size_t length = 0;

            report_append(value, &length, &line);
            return value + strspn(value, " ");
        }
    }
    return NULL;
}

void mdl_bounce_report_read(mdl_bounce_report_t *dsn, const char *message, apr_size_t length,
                            apr_pool_t *p)
{
    text_t text = {message, message + length};
    header_t header = {0};
    const char *words = NULL;
    const char *boundary;
    apr_pool_t *ptemp;
    int reported = 0;
    text_t part;

    dsn->addresses = apr_array_make(p, 4, sizeof(const char *));
    apr_pool_create(&ptemp, p);
    apr_pool_tag(ptemp, "mdl_bounce_report_read");
    read_header(&text, &header, dsn->addresses, p);
    boundary = report_boundary_of(header.content_type, p);
    if (boundary) {
        text_t body = text;

        while (!reported && next_part(&body, boundary, &part)) {
            apr_pool_clear(ptemp);
            reported = report_read_status(&part, &words, ptemp);
        }
    }
    if (!reported && header.null_sender && !header.automatic_reply) {
        words = words_of_text(&text, ptemp);
    }
    dsn->words = words ? apr_pstrndup(p, words, WORDS_MAX) : NULL;
    apr_pool_destroy(ptemp);
}
