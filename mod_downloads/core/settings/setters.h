/*
 * How a directive's word becomes a member of the settings: the row of a directive in the table, and
 * the setters that rows can name.
 */
#ifndef MDL_CORE_SETTINGS_SETTERS_H
#define MDL_CORE_SETTINGS_SETTERS_H

#include <apr_pools.h>

typedef struct mdl_directive_t mdl_directive_t;

/**
 * Checks a word and stores its value, copied to p, in the directive's member of settings.  Returns
 * NULL, or the end of a sentence that begins with the directive's name and says what is allowed. No
 * setter reads a file or looks up a name.
 */
typedef const char *mdl_setter_fn(void *settings, const mdl_directive_t *directive,
                                  const char *word, apr_pool_t *p);

struct mdl_directive_t {
    const char *name;
    const char *standard; /* the default's word; NULL: none */
    mdl_setter_fn *set;
    apr_size_t member; /* offset in the settings */
    int is_list;       /* takes several words, and adds each of them */
    apr_int64_t min;
    apr_int64_t max;
    apr_int64_t scale; /* microseconds of one unit; 0: the member is an int */
    const char *unit;  /* " of seconds", for the sentence */
    const char *path;  /* of the example URL in the sentence */
    apr_size_t given;  /* offset of an int that is set to 1 when the directive is given; 0: none */
};

/** A whole number from min to max, into an int or, with a scale, an apr_interval_time_t. */
mdl_setter_fn mdl_set_number;

/** A number of bytes from min to max, also with K, M or G after it, into an apr_int64_t. */
mdl_setter_fn mdl_set_size;

/** On or Off, into an int. */
mdl_setter_fn mdl_set_flag;

/* --- into a const char * --- */

/** Any text.  It may hold a password, so no sentence repeats it. */
mdl_setter_fn mdl_set_text;

/** sqlite3 or pgsql. */
mdl_setter_fn mdl_set_db_driver;

/** An absolute path. */
mdl_setter_fn mdl_set_path;

/** Another absolute path of a secret file, up to MDL_SECRETS_MAX. */
mdl_setter_fn mdl_add_secret_file;

/** An absolute https or http URL that paths can be appended to; stored without trailing slashes and
    with scheme and host in lower case. */
mdl_setter_fn mdl_set_public_url;

/** The name of an authentication provider of httpd: letters, digits, "-", "_" and ".". */
mdl_setter_fn mdl_set_provider;
mdl_setter_fn mdl_set_region;

/** A mail transport (base/mail/mailer.h). */
mdl_setter_fn mdl_set_transport;

/** A mailbox (base/mail/mailbox.h). */
mdl_setter_fn mdl_set_mailbox;

/** An email address that emails come from, and one that they go to. */
mdl_setter_fn mdl_set_address;
mdl_setter_fn mdl_set_recipient;

/** required, try or off, into an mdl_mail_tls_t. */
mdl_setter_fn mdl_set_tls;

/** proxy or redirect, into an int: whether it is redirect. */
mdl_setter_fn mdl_set_delivery;

/** A word of DownloadsKeep, into an mdl_keep_t. */
mdl_setter_fn mdl_add_keep;

/* --- into an apr_array_header_t * --- */

/** A host name, or "*." before one, in lower case: const char *. */
mdl_setter_fn mdl_add_host;

/** A network as address/bits: apr_ipsubnet_t *. */
mdl_setter_fn mdl_add_network;

/** An origin (RFC 6454 section 6.2) as browsers send it, or "*": const char *. */
mdl_setter_fn mdl_add_origin;

/** A port, or "*" for every port, into an mdl_http_policy_t. */
mdl_setter_fn mdl_add_port;

#endif
