/*
 * One request to an object store, signed and under the guards, and its answer.  Private to
 * base/http.
 */
#ifndef MDL_BASE_HTTP_OBJECT_EXCHANGE_H
#define MDL_BASE_HTTP_OBJECT_EXCHANGE_H

#include <apr_tables.h>
#include <apr_xml.h>
#include <curl/curl.h>

#include "base/http/object_connection.h"
#include "base/http/object_store.h"
#include "base/text/text_buffer.h"

/** What is asked of the store. */
typedef struct {
    const char *method;
    const char *key;               /* NULL: the bucket itself */
    const apr_table_t *query;      /* decoded, or NULL */
    const char *range;             /* "0-99", or NULL */
    const mdl_object_body_t *body; /* or NULL */
    const char *root;              /* name of the XML's root element; NULL: the answer is no XML */
    apr_size_t most;               /* bytes of a good answer's body; 0: 64 KiB */
    int wait_s;                    /* for the answer; 0: as configured */
    int optional;                  /* whether the store may refuse it: then nothing is logged */
} mdl_object_request_t;

/** What the store has answered; lives in the exchange's pool. */
typedef struct {
    int status;                     /* 0: nothing */
    const char *code;               /* of an error, "" if the store gave none */
    const char *body;               /* with a NUL */
    apr_size_t length;              /* of body */
    const apr_xml_elem *xml;        /* of a good answer, if a root was asked for */
    const char *etag;               /* or NULL */
    apr_int64_t size;               /* of the body, as mdl_http_response_length has it */
    apr_int64_t first, last, total; /* of Content-Range; total is -1 if there is none */
    apr_time_t date;                /* of the store's clock, or 0 */
} mdl_object_answer_t;

/** One attempt at a request. */
typedef struct {
    mdl_object_store_t *store;
    const mdl_object_request_t *request;
    apr_pool_t *pool; /* of this attempt */
    /* Takes bytes of a 206 answer's body, or returns 0 to pause: then it gets the same bytes again.
       NULL: they go into the answer.  Set behind mdl_object_exchange_init. */
    int (*sink)(void *baton, const char *bytes, apr_size_t length);
    void *baton;

    mdl_object_connection_t *connection; /* NULL: it does not run */
    struct curl_slist *lines;            /* of the request's head */
    apr_int64_t sent;                    /* bytes of the request's body */
    apr_status_t fault;                  /* of reading them */
    apr_size_t header_bytes;
    mdl_text_buffer_t *text; /* of the answer's body */
    apr_size_t text_length;
    int too_large;
    /* How often the request was begun on a connection.  libcurl repeats it by itself when a kept
       connection ends without an answer. */
    int begun;
    int status;       /* of the answer, once its head is there; 0 before */
    apr_time_t moved; /* when bytes went either way, by mdl_clock_monotonic */
    int done;
    CURLcode code; /* once it is done */
} mdl_object_exchange_t;

/** Prepares an exchange that has not begun. */
void mdl_object_exchange_init(mdl_object_exchange_t *exchange, mdl_object_store_t *store,
                              const mdl_object_request_t *request, apr_pool_t *pool);

/** Begins the request; sends nothing yet.  Without memory the exchange is done with a failure. */
void mdl_object_exchange_begin(mdl_object_exchange_t *exchange);

/** Does what can be done without waiting; the exchange may be done then. */
void mdl_object_exchange_perform(mdl_object_exchange_t *exchange);

/** Waits until something can be done, at most so many milliseconds. */
void mdl_object_exchange_wait(mdl_object_exchange_t *exchange, int milliseconds);

/** Lets an exchange go on that its sink has paused. */
void mdl_object_exchange_resume(mdl_object_exchange_t *exchange);

/** The result of an exchange that is done, or whose head has arrived; in *why, in p, the sentence
   for the operator. */
apr_status_t mdl_object_exchange_result(mdl_object_exchange_t *exchange,
                                        mdl_object_answer_t *answer, const char **why,
                                        apr_pool_t *p);

/** How old something was, when the answer was sent, that has this date (RFC 3339); 0 for a date
   that can't be read. */
apr_interval_time_t mdl_object_answer_age(const mdl_object_answer_t *answer, const char *date);

/** Ends the request, also one that is not done, and gives its connection back. */
void mdl_object_exchange_end(mdl_object_exchange_t *exchange);

#endif
