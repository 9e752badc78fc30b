/*
 * What the email transports share: their configuration and the outcomes of sending.
 */
#ifndef MDL_BASE_MAIL_TRANSPORT_H
#define MDL_BASE_MAIL_TRANSPORT_H

/**
 * STARTTLS for smtp://; smtps:// always uses TLS.  Certificates are always verified.  With a user,
 * TRY means REQUIRED: only OFF lets a password be sent in clear.
 */
typedef enum { MDL_MAIL_TLS_REQUIRED, MDL_MAIL_TLS_TRY, MDL_MAIL_TLS_OFF } mdl_mail_tls_t;

typedef struct {
    const char *transport; /* "smtp://host[:port]", "smtps://host[:port]", "sendmail:/path",
                              "maildir:/path" */
    const char *user;      /* SMTP AUTH, NULL for none */
    const char *password;
    mdl_mail_tls_t tls;
    const char *ca_file; /* certificates in PEM to trust for SMTP; NULL: the system's */
    /** stopped(): no message may begin any more; withdrawn(): this message must not be sent.  SMTP
        calls both at least once a second until the message body begins.  Either may be NULL. */
    int (*stopped)(void *baton);
    int (*withdrawn)(void *baton);
    void *baton;
} mdl_mail_config_t;

typedef enum {
    MDL_MAIL_SENT,
    MDL_MAIL_LATER,   /* 4xx; no connection; greeting, TLS or login refused; a relay's sending
                         limit, although its code is 5xx: try again */
    MDL_MAIL_UNKNOWN, /* the connection broke after the body: try again, same Message-ID */
    MDL_MAIL_FAILED   /* 5xx for the message, or it can't be sent at all: never try again */
} mdl_mail_outcome_t;

#endif
