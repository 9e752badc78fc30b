/*
 * Hands finished messages to a transport: SMTP (RFC 5321, by libcurl), a local sendmail program, or
 * a Maildir.  A mailer belongs to one thread; an SMTP connection is kept and used again.  The
 * process ignores SIGPIPE and has called mdl_http_global_init.
 */
#ifndef MDL_BASE_MAIL_MAILER_H
#define MDL_BASE_MAIL_MAILER_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_mailer_t mdl_mailer_t;

/**
 * STARTTLS on smtp://; smtps:// is always TLS.  A certificate is always verified.  With a user, TRY
 * means REQUIRED: only OFF lets a password go in clear.
 */
typedef enum { MDL_MAIL_TLS_REQUIRED, MDL_MAIL_TLS_TRY, MDL_MAIL_TLS_OFF } mdl_mail_tls_t;

typedef struct {
    const char *transport; /* "smtp://host[:port]", "smtps://host[:port]", "sendmail:/path",
                              "maildir:/path" */
    const char *user;      /* SMTP AUTH, NULL for none */
    const char *password;
    mdl_mail_tls_t tls;
    const char
        *ca_file; /* certificates in PEM that vouch for the SMTP server; NULL: the system's */
    int (*stopped)(void *baton); /* asked at least once a second during a transfer; may be NULL */
    void *baton;
} mdl_mailer_config_t;

typedef enum {
    MDL_MAIL_SENT,
    MDL_MAIL_LATER,   /* 4xx, no connection, TLS or login refused: try again */
    MDL_MAIL_UNKNOWN, /* the connection broke after the body: try again, same Message-ID */
    MDL_MAIL_FAILED   /* 5xx, or what can't be sent as it is: never try again */
} mdl_mail_outcome_t;

/** Whether a transport's text is understood; if not, *why is a sentence. */
int mdl_mailer_transport_valid(const char *transport, const char **why, apr_pool_t *p);

/** Makes a mailer in p; the configuration's strings must live as long.  No connection is made yet.
 */
apr_status_t mdl_mailer_create(mdl_mailer_t **mailer, const mdl_mailer_config_t *config,
                               apr_pool_t *p);

/**
 * Sends one message from one address to one address.  An address that mdl_mime_address_valid
 * refuses, and a message with a NUL or a CR or LF that is not part of a CRLF, are FAILED and reach
 * no transport; sendmail and Maildir get LF line ends.
 * *words gets the server's last line or the reason, in printable ASCII of at most 500 bytes,
 * allocated from p; NULL for what a program or a Maildir took.  Blocks, at most 11 minutes (RFC
 * 5321 section 4.5.3.2 gives the server 10 after the final dot); ends within about a second once
 * stopped() says so (LATER or UNKNOWN).
 */
mdl_mail_outcome_t mdl_mailer_send(mdl_mailer_t *mailer, const char *from, const char *to,
                                   const char *message, apr_size_t length, const char **words,
                                   apr_pool_t *p);

/**
 * Tries the transport without sending, for `downloadsctl check`: connects, greets, and logs in
 * where asked to; looks whether the program can be run; makes the Maildir and a file in it. Returns
 * APR_EGENERAL and the reason in *words.
 */
apr_status_t mdl_mailer_check(mdl_mailer_t *mailer, const char **words, apr_pool_t *p);

#endif
