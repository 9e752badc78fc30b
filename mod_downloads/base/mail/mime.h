/*
 * One email as bytes (RFC 5322, RFC 2045-2047): multipart/alternative, text first, UTF-8 in
 * quoted-printable.  The same input gives the same bytes.
 */
#ifndef MDL_BASE_MAIL_MIME_H
#define MDL_BASE_MAIL_MIME_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "base/text/text_buffer.h"

/** A body, written while the message is built. */
typedef struct {
    void (*write)(const void *baton, mdl_text_buffer_t *out);
    const void *baton;
} mdl_mime_body_t;

/** A body from an existing text, which is not copied. */
mdl_mime_body_t mdl_mime_body_of(const char *text);

typedef struct {
    const char *from_name; /* may be NULL */
    const char *from;      /* address */
    const char *reply_to;  /* address, may be NULL */
    const char *to_name;   /* may be NULL */
    const char *to;        /* address */
    const char *subject;
    const char *unsubscribe_url; /* for one click (RFC 8058); or NULL */
    const char *message_id;      /* without angle brackets: "id@host" */
    apr_time_t date;
    mdl_mime_body_t text;
    mdl_mime_body_t html;
} mdl_mime_mail_t;

/**
 * Whether an address (NULL: no) can be used in SMTP and in a header unchanged: local@domain, at
 * most 254 bytes.  The local part has dots, but not first, and RFC 5322's atext (so no space,
 * control character, quote, comma, angle bracket or second "@").  It may also have characters
 * beyond ASCII (RFC 6532) except spaces, line ends and marks of direction, and then needs a server
 * with SMTPUTF8.  The domain has letters, digits, hyphens and single dots (punycode for all else).
 */
int mdl_mime_address_valid(const char *address);

/** An address as entered by a person, in p: unchanged, except that a domain beyond ASCII gets its
    xn-- form.  NULL if invalid or NULL. */
const char *mdl_mime_address_of(const char *text, apr_pool_t *p);

/** The same for a sender's address, for any server: NULL also if it needs SMTPUTF8. */
const char *mdl_mime_address_of_sender(const char *text, apr_pool_t *p);

/** Whether domain is valid after the "@" of such an address. */
int mdl_mime_domain_valid(const char *domain);

/**
 * Builds the message with CRLF line ends and in ASCII, no line longer than 78 bytes unless a single
 * address, URL or message id is.  Names and subject become encoded words (RFC 2047) if they are not
 * plain ASCII or don't fit their line.  In them, control characters, line ends and marks of
 * direction (U+2028 to U+202E, U+2066 to U+2069) become spaces, spaces at the ends are removed, and
 * a byte that is not UTF-8 becomes U+FFFD.  The boundary is derived from the message id.  *message
 * lives in p.  Returns APR_EINVAL for an invalid address or message id (a message id has the form
 * of an address).
 */
apr_status_t mdl_mime_build(const char **message, apr_size_t *length, const mdl_mime_mail_t *mail,
                            apr_pool_t *p);

#endif
