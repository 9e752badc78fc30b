#include "base/mail/mime.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "base/text/idn.h"
#include "base/text/text_buffer.h"
#include "base/text/utf8.h"

#define ADDRESS_MAX      254
#define LINE_MAX_LENGTH  78
#define WORD_MAX_LENGTH  75 /* RFC 2047 section 2 */
#define QP_LINE_LENGTH   76 /* RFC 2045 section 6.7 (5) */
#define LOOK_AHEAD       3  /* the most bytes after the first of a character or line end */
#define BOUNDARY_ID_MAX  60
#define LABEL_MAX_LENGTH 63
#define REPLACEMENT      "\xEF\xBF\xBD"

static const char hex_digits[] = "0123456789ABCDEF";

static int is_atext(char c)
{
    return apr_isalnum(c) || (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

/* The length of a character allowed in a local part; 0 for any other. */
static apr_size_t local_character_length(const char *at)
{
    apr_uint32_t c;
    apr_size_t length = mdl_utf8_read(at, &c);

    if (c < 0x80) {
        return is_atext(*at) || *at == '.';
    }
    return c == 0xfffd || c == 0xa0 || c == 0x3000 || (c >= 0x2000 && c <= 0x200f) ||
                   mdl_utf8_disturbs_filename(c)
               ? 0
               : length;
}

int mdl_mime_domain_valid(const char *domain)
{
    while (1) {
        apr_size_t length = strcspn(domain, ".");

        if (length == 0 || length > LABEL_MAX_LENGTH || domain[0] == '-' ||
            domain[length - 1] == '-') {
            return 0;
        }
        for (apr_size_t i = 0; i < length; i++) {
            if (!apr_isalnum(domain[i]) && domain[i] != '-') {
                return 0;
            }
        }
        if (domain[length] == '\0') {
            return 1;
        }
        domain += length + 1;
    }
}

int mdl_mime_address_valid(const char *address)
{
    const char *at = address != NULL ? strchr(address, '@') : NULL;

    if (at == NULL || at == address || address[0] == '.' || strlen(address) > ADDRESS_MAX) {
        return 0;
    }
    for (apr_size_t length; address < at; address += length) {
        if ((length = local_character_length(address)) == 0) {
            return 0;
        }
    }
    return mdl_mime_domain_valid(at + 1);
}

const char *mdl_mime_address_of(const char *text, apr_pool_t *p)
{
    const char *at = text != NULL ? strchr(text, '@') : NULL;
    const char *domain = at != NULL && strlen(text) <= ADDRESS_MAX ? mdl_idn_ascii(at + 1, p)
                                                                   : NULL;
    const char *address;

    if (domain == NULL) {
        return NULL;
    }
    address = apr_pstrcat(p, apr_pstrmemdup(p, text, (apr_size_t)(at + 1 - text)), domain, NULL);
    return mdl_mime_address_valid(address) ? address : NULL;
}

const char *mdl_mime_address_of_sender(const char *text, apr_pool_t *p)
{
    const char *address = mdl_mime_address_of(text, p);

    return address != NULL && mdl_utf8_is_ascii(address) ? address : NULL;
}

/* Text made fit for a header: one line of UTF-8 without spaces at its ends. */
static const char *one_line(const char *text, apr_pool_t *p)
{
    char *line = apr_palloc(p, strlen(text) * 3 + 1);
    char *end = line;

    while (*text != '\0') {
        apr_uint32_t c;
        apr_size_t length = mdl_utf8_read(text, &c);

        if (c == 0xfffd) {
            memcpy(end, REPLACEMENT, 3);
            end += 3;
        } else if (mdl_utf8_disturbs(c)) {
            *end++ = ' ';
        } else {
            memcpy(end, text, length);
            end += length;
        }
        text += length;
    }
    while (end > line && end[-1] == ' ') {
        end--;
    }
    *end = '\0';
    return line + strspn(line, " ");
}

static int is_plain_ascii(const char *line)
{
    for (const char *c = line; *c != '\0'; c++) {
        if (!apr_isprint(*c) || (unsigned char)*c >= 0x80) {
            return 0;
        }
    }
    /* Text that looks like an encoded word would be decoded by the recipient's program. */
    return strstr(line, "=?") == NULL;
}

/* One character in the Q encoding as it may stand in a phrase (RFC 2047 section 5 (3)). */
static apr_size_t q_character(char *out, const char *s, apr_size_t length)
{
    apr_size_t written = 0;

    for (apr_size_t i = 0; i < length; i++) {
        if (s[i] == ' ') {
            out[written++] = '_';
        } else if (apr_isalnum(s[i]) || (s[i] != '\0' && strchr("!*+-/", s[i]) != NULL)) {
            out[written++] = s[i];
        } else {
            out[written++] = '=';
            out[written++] = hex_digits[(unsigned char)s[i] >> 4];
            out[written++] = hex_digits[(unsigned char)s[i] & 15];
        }
    }
    return written;
}

/* Writes a line as encoded words, folded between them; column is where the first one begins. */
static apr_size_t encoded_words_write(mdl_text_buffer_t *out, const char *line, apr_size_t column)
{
    static const char begin[] = "=?utf-8?Q?";
    const apr_size_t begin_length = sizeof begin - 1;
    apr_size_t length = begin_length;

    mdl_text_buffer_put(out, begin);
    while (*line != '\0') {
        char q[12];
        apr_uint32_t c;
        apr_size_t bytes = mdl_utf8_read(line, &c);
        apr_size_t q_length = q_character(q, line, bytes);
        apr_size_t after = length + q_length + 2;

        if (after > WORD_MAX_LENGTH || column + after > LINE_MAX_LENGTH) {
            mdl_text_buffer_put(out, "?=\r\n ");
            mdl_text_buffer_put(out, begin);
            length = begin_length;
            column = 1;
        }
        mdl_text_buffer_write(out, q, q_length);
        length += q_length;
        line += bytes;
    }
    mdl_text_buffer_put(out, "?=");
    return column + length + 2;
}

static void header_write_text(mdl_text_buffer_t *out, const char *name, const char *text,
                              apr_pool_t *p)
{
    const char *line = one_line(text, p);
    apr_size_t column = strlen(name) + 2;

    mdl_text_buffer_put(out, apr_pstrcat(p, name, ": ", NULL));
    if (is_plain_ascii(line) && column + strlen(line) <= LINE_MAX_LENGTH) {
        mdl_text_buffer_put(out, line);
    } else {
        encoded_words_write(out, line, column);
    }
    mdl_text_buffer_put(out, "\r\n");
}

/* A display name as a quoted-string of RFC 5322. */
static const char *quoted_string(const char *line, apr_pool_t *p)
{
    char *result = apr_palloc(p, strlen(line) * 2 + 3);
    char *end = result;

    *end++ = '"';
    for (; *line != '\0'; line++) {
        if (*line == '"' || *line == '\\') {
            *end++ = '\\';
        }
        *end++ = *line;
    }
    *end++ = '"';
    *end = '\0';
    return result;
}

static void header_write_mailbox(mdl_text_buffer_t *out, const char *name, const char *display,
                                 const char *address, apr_pool_t *p)
{
    const char *line = display != NULL ? one_line(display, p) : "";
    apr_size_t column = strlen(name) + 2;

    mdl_text_buffer_put(out, apr_pstrcat(p, name, ": ", NULL));
    if (*line) {
        const char *phrase = quoted_string(line, p);

        if (is_plain_ascii(line) && column + strlen(phrase) <= LINE_MAX_LENGTH) {
            mdl_text_buffer_put(out, phrase);
            column += strlen(phrase);
        } else {
            column = encoded_words_write(out, line, column);
        }
        mdl_text_buffer_put(out, column + strlen(address) + 3 <= LINE_MAX_LENGTH ? " " : "\r\n ");
    }
    mdl_text_buffer_put(out, apr_pstrcat(p, "<", address, ">\r\n", NULL));
}

/* Bytes of the line end at s: CR LF, CR, or LF. */
static apr_size_t newline_length(const char *s)
{
    if (s[0] == '\r') {
        return s[1] == '\n' ? 2 : 1;
    }
    return s[0] == '\n';
}

typedef struct {
    mdl_text_buffer_t *out;
    apr_size_t column;
} quoted_printable_t;

/* Quoted-printable; a character is never cut by a soft line break, nor by the end of a piece. */
static apr_size_t quoted_printable_write(void *baton, const char *piece, apr_size_t piece_length,
                                         int last)
{
    quoted_printable_t *part = baton;
    mdl_text_buffer_t *out = part->out;
    apr_size_t column = part->column;
    const char *text = piece;
    const char *end = piece + (last ? piece_length : piece_length - LOOK_AHEAD);

    while (text < end) {
        char encoded[12];
        apr_uint32_t c;
        apr_size_t length = 0;
        apr_size_t bytes = newline_length(text);

        if (bytes) {
            mdl_text_buffer_put(out, "\r\n");
            text += bytes;
            column = 0;
            continue;
        }
        bytes = mdl_utf8_read(text, &c);
        /* A dot at the beginning of a line is encoded, so no transport needs dot-stuffing. */
        if (bytes == 1 && (apr_isgraph(*text) || *text == ' ') && (unsigned char)*text < 0x80 &&
            *text != '=' && !(*text == ' ' && (text[1] == '\0' || newline_length(text + 1))) &&
            !(*text == '.' && (column == 0 || column == QP_LINE_LENGTH - 1))) {
            encoded[length++] = *text;
        } else {
            for (apr_size_t i = 0; i < bytes; i++) {
                encoded[length++] = '=';
                encoded[length++] = hex_digits[(unsigned char)text[i] >> 4];
                encoded[length++] = hex_digits[(unsigned char)text[i] & 15];
            }
        }
        if (column + length > QP_LINE_LENGTH - 1) {
            mdl_text_buffer_put(out, "=\r\n");
            column = 0;
        }
        mdl_text_buffer_write(out, encoded, length);
        column += length;
        text += bytes;
    }
    part->column = column;
    return (apr_size_t)(text - piece);
}

/* "=_" never occurs in quoted-printable, so neither does the boundary (RFC 2045 section 6.7). */
static const char *mime_boundary(const char *message_id, apr_pool_t *p)
{
    char id[BOUNDARY_ID_MAX + 1];
    apr_size_t length = 0;

    for (; *message_id && length < BOUNDARY_ID_MAX; message_id++) {
        if (apr_isalnum(*message_id)) {
            id[length++] = *message_id;
        }
    }
    id[length] = '\0';
    return apr_pstrcat(p, "=_", id, NULL);
}

static void part_write(mdl_text_buffer_t *out, const char *boundary, const char *type,
                       mdl_mime_body_t body, apr_pool_t *p)
{
    quoted_printable_t part = {out, 0};
    mdl_text_buffer_t *text = mdl_text_buffer_make_passing(quoted_printable_write, &part, p);
    const char *head = apr_pstrcat(
        p, "--", boundary, "\r\nContent-Type: ", type,
        "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n", NULL);

    mdl_text_buffer_put(out, head);
    body.write(body.baton, text);
    mdl_text_buffer_end(text);
    mdl_text_buffer_put(out, "\r\n");
}

static void body_put(const void *baton, mdl_text_buffer_t *out)
{
    mdl_text_buffer_put(out, baton);
}

mdl_mime_body_t mdl_mime_body_of(const char *text)
{
    return (mdl_mime_body_t){body_put, text};
}

apr_status_t mdl_mime_build(const char **message, apr_size_t *length, const mdl_mime_mail_t *mail,
                            apr_pool_t *p)
{
    mdl_text_buffer_t *out;
    const char *boundary;
    apr_pool_t *ptemp;
    apr_status_t rv;

    if (!mdl_mime_address_valid(mail->from) || !mdl_mime_address_valid(mail->to) ||
        !mdl_mime_address_valid(mail->message_id) ||
        (mail->reply_to != NULL && !mdl_mime_address_valid(mail->reply_to))) {
        return APR_EINVAL;
    }
    rv = apr_pool_create(&ptemp, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    apr_pool_tag(ptemp, "mdl_mime_build");
    out = mdl_text_buffer_make(p);
    boundary = mime_boundary(mail->message_id, ptemp);

    mdl_text_buffer_put(
        out, apr_pstrcat(ptemp, "Date: ", mdl_clock_rfc5322(mail->date, ptemp), "\r\n", NULL));
    header_write_mailbox(out, "From", mail->from_name, mail->from, ptemp);
    if (mail->reply_to != NULL) {
        header_write_mailbox(out, "Reply-To", NULL, mail->reply_to, ptemp);
    }
    header_write_mailbox(out, "To", mail->to_name, mail->to, ptemp);
    header_write_text(out, "Subject", mail->subject, ptemp);
    if (mail->unsubscribe_url != NULL) {
        mdl_text_buffer_put(out,
                            apr_pstrcat(ptemp, "List-Unsubscribe:\r\n <", mail->unsubscribe_url,
                                        ">\r\nList-Unsubscribe-Post: "
                                        "List-Unsubscribe=One-Click\r\n",
                                        NULL));
    }
    mdl_text_buffer_put(out,
                        apr_pstrcat(ptemp, "Message-ID: <", mail->message_id,
                                    ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                                    "Content-Type: multipart/alternative;\r\n boundary=\"",
                                    boundary, "\"\r\n\r\n", NULL));
    part_write(out, boundary, "text/plain", mail->text, ptemp);
    part_write(out, boundary, "text/html", mail->html, ptemp);
    mdl_text_buffer_put(out, apr_pstrcat(ptemp, "--", boundary, "--\r\n", NULL));
    *message = mdl_text_buffer_text(out, length);
    apr_pool_destroy(ptemp);
    return APR_SUCCESS;
}
