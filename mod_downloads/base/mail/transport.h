/*
 * What the transports of email have in common: how they are configured, and how sending ends.
 */
#ifndef MDL_BASE_MAIL_TRANSPORT_H
#define MDL_BASE_MAIL_TRANSPORT_H

/**
 * STARTTLS for smtp://; smtps:// is always TLS.  A certificate is always verified.  With a user,
 * TRY means REQUIRED: only OFF lets a password go in clear.
 */
typedef enum { MDL_MAIL_TLS_REQUIRED, MDL_MAIL_TLS_TRY, MDL_MAIL_TLS_OFF } mdl_mail_tls_t;

typedef struct {
    const char *transport; /* "smtp://host[:port]", "smtps://host[:port]", "sendmail:/path",
                              "maildir:/path" */
    const char *user;      /* SMTP AUTH, NULL for none */
    const char *password;
    mdl_mail_tls_t tls;
    const char *ca_file; /* certificates in PEM to trust for SMTP; NULL: the system's */
    /** Whether no message is to begin any more, and whether this one is not to be sent.  An SMTP
        transfer asks both at least once a second until the message itself goes out; may be NULL. */
    int (*stopped)(void *baton);
    int (*withdrawn)(void *baton);
    void *baton;
} mdl_mail_config_t;

typedef enum {
    MDL_MAIL_SENT,
    MDL_MAIL_LATER,   /* 4xx; no connection, or greeting, TLS or login refused; a relay's limit for
                         its customer, though it says 5xx: try again */
    MDL_MAIL_UNKNOWN, /* the connection broke after the body: try again, same Message-ID */
    MDL_MAIL_FAILED   /* 5xx for the message, or one that can't be sent as it is: never try again */
} mdl_mail_outcome_t;

#endif
