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

/** What is written into a message as it is made. */
typedef struct {
    void (*write)(const void *baton, mdl_text_buffer_t *out);
    const void *baton;
} mdl_mime_body_t;

/** A text that is there already, and is not copied. */
mdl_mime_body_t mdl_mime_body_of(const char *text);

typedef struct {
    const char *from_name; /* may be NULL */
    const char *from;      /* address */
    const char *reply_to;  /* address, may be NULL */
    const char *to_name;   /* may be NULL */
    const char *to;        /* address */
    const char *subject;
    const char *message_id; /* without angle brackets: "id@host" */
    apr_time_t date;
    mdl_mime_body_t text;
    mdl_mime_body_t html;
} mdl_mime_mail_t;

/**
 * Whether an address (NULL: no) can be put into SMTP and into a header as it is: local@domain, at
 * most 254 bytes; the local part of dots and of RFC 5322's atext (so no space, control character,
 * quote, comma, angle bracket or second "@"), not beginning with a dot, and of characters beyond
 * ASCII but for spaces and those that disturb a line (RFC 6532): then it takes a server with
 * SMTPUTF8.  The domain is of letters, digits, hyphens and single dots (punycode for the rest).
 */
int mdl_mime_address_valid(const char *address);

/** The address that a person has written, in p: as it is, but for a domain that is not ASCII, which
    becomes its xn-- form.  NULL (also of NULL) if that is not valid. */
const char *mdl_mime_address_of(const char *text, apr_pool_t *p);

/** The same for an address of ours, which stands in emails to anybody: NULL also if it takes
    SMTPUTF8. */
const char *mdl_mime_address_of_sender(const char *text, apr_pool_t *p);

/** Whether domain can stand behind the "@" of such an address. */
int mdl_mime_domain_valid(const char *domain);

/**
 * Builds the message with CRLF line ends and in ASCII, no line longer than 78 bytes unless a single
 * address or message id is.  Names and subject are encoded words (RFC 2047) where they are not
 * plain ASCII or don't fit their line; CR, LF, other control characters and those that end lines
 * or turn the direction of text (U+2028 to U+202E, U+2066 to U+2069) in them become spaces, spaces
 * at their ends are removed, and a byte that is not UTF-8 becomes U+FFFD.  The boundary is made of
 * the message id.  *message lives in p.  Returns APR_EINVAL for an address or message id that is
 * not valid (a message id has the form of an address).
 */
apr_status_t mdl_mime_build(const char **message, apr_size_t *length, const mdl_mime_mail_t *mail,
                            apr_pool_t *p);

#endif
