#include "base/http/object_exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_date.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "base/http/easy.h"
#include "base/http/object_class.h"
#include "base/http/object_xml.h"
#include "base/http/response.h"
#include "base/http/sign.h"

#define BUFFER_BYTES 65536L
#define MOST_BYTES   65536
#define MOST_CODE    64

/* --- the bytes --- */

static int status_is_good(int status)
{
    return status >= 200 && status < 300;
}

static int on_connected(void *baton, char *remote, char *local, int remote_port, int local_port)
{
    mdl_object_exchange_t *exchange = baton;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    exchange->begun++;
    exchange->moved = mdl_clock_monotonic();
    return CURL_PREREQFUNC_OK;
}

static size_t on_header(char *data, size_t unit, size_t count, void *baton)
{
    mdl_object_exchange_t *exchange = baton;
    size_t size = unit * count;
    long status = 0;

    exchange->moved = mdl_clock_monotonic();
    exchange->header_bytes += size;
    if (exchange->header_bytes > MDL_HTTP_MAX_HEADERS) {
        return 0;
    }
    if (size > 0 && (data[0] == '\r' || data[0] == '\n')) {
        curl_easy_getinfo(exchange->connection->easy, CURLINFO_RESPONSE_CODE, &status);
        exchange->status = status >= 200 ? (int)status : 0;
    }
    return size;
}

static size_t on_body(char *data, size_t unit, size_t count, void *baton)
{
    mdl_object_exchange_t *exchange = baton;
    apr_size_t most = exchange->request->most != 0 && status_is_good(exchange->status)
                          ? exchange->request->most
                          : MOST_BYTES;
    size_t size = unit * count;

    exchange->moved = mdl_clock_monotonic();
    if (exchange->sink != NULL && exchange->status == 206) {
        return exchange->sink(exchange->baton, data, size) ? size : CURL_WRITEFUNC_PAUSE;
    }
    if (size > most - exchange->text_length) {
        exchange->too_large = 1;
        return 0;
    }
    mdl_text_buffer_write(exchange->text, data, size);
    exchange->text_length += size;
    return size;
}

static size_t on_read(char *data, size_t unit, size_t count, void *baton)
{
    mdl_object_exchange_t *exchange = baton;
    const mdl_object_body_t *body = exchange->request->body;
    apr_int64_t left = body->length - exchange->sent;
    size_t size = (apr_int64_t)(unit * count) < left ? unit * count : (size_t)left;
    ssize_t got = (ssize_t)size;

    exchange->moved = mdl_clock_monotonic();
    if (body->bytes != NULL) {
        memcpy(data, body->bytes + exchange->sent, size);
    } else if (size > 0) {
        do {
            got = pread(body->fd, data, size, (off_t)(body->offset + exchange->sent));
        } while (got < 0 && errno == EINTR);
        if (got <= 0) {
            exchange->fault = got < 0 ? APR_FROM_OS_ERROR(errno) : APR_EOF;
            return CURL_READFUNC_ABORT;
        }
    }
    exchange->sent += got;
    return (size_t)got;
}

/* libcurl begins again when a kept connection turns out to be closed. */
static int on_seek(void *baton, curl_off_t offset, int origin)
{
    mdl_object_exchange_t *exchange = baton;

    if (origin != SEEK_SET || offset < 0 || offset > exchange->request->body->length) {
        return CURL_SEEKFUNC_FAIL;
    }
    exchange->sent = offset;
    return CURL_SEEKFUNC_OK;
}

/* --- the request --- */

static int exchange_line(mdl_object_exchange_t *exchange, const char *name, const char *value)
{
    struct curl_slist *longer = curl_slist_append(
        exchange->lines, apr_pstrcat(exchange->pool, name, ": ", value, NULL));

    exchange->lines = longer != NULL ? longer : exchange->lines;
    return longer != NULL;
}

/* The request's path, decoded. */
static const char *exchange_path(const mdl_object_exchange_t *exchange)
{
    const mdl_object_place_t *place = mdl_object_store_place(exchange->store);

    if (exchange->request->key != NULL) {
        return apr_pstrcat(exchange->pool, place->path, "/", place->prefix, exchange->request->key,
                           NULL);
    }
    return *place->path != '\0' ? place->path : "/";
}

static int set_head(mdl_object_exchange_t *exchange)
{
    const mdl_object_request_t *request = exchange->request;
    const mdl_sign_credentials_t *credentials = mdl_object_store_credentials(exchange->store);
    const char *sha256 = request->body != NULL ? request->body->sha256 : MDL_SIGN_NO_BODY;
    const char *date = mdl_sign_date(mdl_object_store_now(exchange->store), exchange->pool);
    apr_table_t *headers = apr_table_make(exchange->pool, 4);
    const mdl_sign_request_t signing = {.method = request->method,
                                        .path = exchange_path(exchange),
                                        .query = request->query,
                                        .headers = headers,
                                        .body_sha256 = sha256};

    apr_table_setn(headers, "host", mdl_object_store_host(exchange->store));
    apr_table_setn(headers, "x-amz-content-sha256", sha256);
    apr_table_setn(headers, "x-amz-date", date);
    if (credentials->session_token != NULL) {
        apr_table_setn(headers, "x-amz-security-token", credentials->session_token);
    }
    /* "Expect:" without a value keeps libcurl from waiting for a 100. */
    return exchange_line(exchange, "x-amz-content-sha256", sha256) &&
           exchange_line(exchange, "x-amz-date", date) &&
           (credentials->session_token == NULL ||
            exchange_line(exchange, "x-amz-security-token", credentials->session_token)) &&
           exchange_line(exchange, "Authorization",
                         mdl_sign_authorization(credentials, &signing, exchange->pool)) &&
           exchange_line(exchange, "Expect", "");
}

static const char *exchange_url(const mdl_object_exchange_t *exchange)
{
    const mdl_object_place_t *place = mdl_object_store_place(exchange->store);
    const char *query = mdl_sign_encode_query(exchange->request->query, exchange->pool);

    return apr_pstrcat(exchange->pool, place->origin,
                       mdl_sign_encode_path(exchange_path(exchange), exchange->pool),
                       *query != '\0' ? "?" : "", query, NULL);
}

static int set_request(CURL *easy, mdl_object_exchange_t *exchange)
{
    const mdl_object_request_t *request = exchange->request;

    return curl_easy_setopt(easy, CURLOPT_URL, exchange_url(exchange)) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->lines) == CURLE_OK &&
           (request->range == NULL ||
            curl_easy_setopt(easy, CURLOPT_RANGE, request->range) == CURLE_OK) &&
           (strcmp(request->method, "HEAD") != 0 ||
            curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK) &&
           (request->body == NULL ||
            (curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body->length) ==
                 CURLE_OK)) &&
           curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

static int set_callbacks(CURL *easy, mdl_object_exchange_t *exchange)
{
    int connect_s = mdl_object_store_config(exchange->store)->timeout_s;

    return curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)connect_s) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_READDATA, exchange) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange) == CURLE_OK;
}

void mdl_object_exchange_init(mdl_object_exchange_t *exchange, mdl_object_store_t *store,
                              const mdl_object_request_t *request, apr_pool_t *pool)
{
    memset(exchange, 0, sizeof *exchange);
    exchange->store = store;
    exchange->request = request;
    exchange->pool = pool;
}

void mdl_object_exchange_begin(mdl_object_exchange_t *exchange)
{
    mdl_object_connection_t *connection = mdl_object_connection_take(
        mdl_object_store_connections(exchange->store));

    exchange->text = mdl_text_buffer_make(exchange->pool);
    exchange->connection = connection;
    if (connection == NULL ||
        !mdl_http_easy_guard(connection->easy, 1,
                             mdl_object_store_config(exchange->store)->ca_file) ||
        !set_head(exchange) || !set_request(connection->easy, exchange) ||
        !set_callbacks(connection->easy, exchange) ||
        curl_multi_add_handle(connection->multi, connection->easy) != CURLM_OK) {
        exchange->done = 1;
        exchange->code = CURLE_OUT_OF_MEMORY;
    }
}

/* --- its course --- */

static int exchange_is_late(const mdl_object_exchange_t *exchange)
{
    int seconds = exchange->request->wait_s != 0
                      ? exchange->request->wait_s
                      : mdl_object_store_config(exchange->store)->timeout_s;

    /* libcurl itself looks after the time to connect. */
    return exchange->begun > 0 &&
           mdl_clock_monotonic() - exchange->moved > apr_time_from_sec(seconds);
}

void mdl_object_exchange_perform(mdl_object_exchange_t *exchange)
{
    CURLMsg *message;
    int running, left;

    if (exchange->done) {
        return;
    }
    curl_multi_perform(exchange->connection->multi, &running);
    while ((message = curl_multi_info_read(exchange->connection->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            exchange->done = 1;
            exchange->code = message->data.result;
        }
    }
    if (!exchange->done && exchange_is_late(exchange)) {
        exchange->done = 1;
        exchange->code = CURLE_OPERATION_TIMEDOUT;
    }
}

void mdl_object_exchange_wait(mdl_object_exchange_t *exchange, int milliseconds)
{
    curl_multi_poll(exchange->connection->multi, NULL, 0, milliseconds, NULL);
}

void mdl_object_exchange_resume(mdl_object_exchange_t *exchange)
{
    if (!exchange->done) {
        curl_easy_pause(exchange->connection->easy, CURLPAUSE_CONT);
    }
}

void mdl_object_exchange_end(mdl_object_exchange_t *exchange)
{
    if (exchange->connection != NULL) {
        curl_multi_remove_handle(exchange->connection->multi, exchange->connection->easy);
        mdl_object_connection_give(mdl_object_store_connections(exchange->store),
                                   exchange->connection);
        exchange->connection = NULL;
    }
    curl_slist_free_all(exchange->lines);
    exchange->lines = NULL;
}

/* --- its answer --- */

static const char *exchange_header(const mdl_object_exchange_t *exchange, const char *name)
{
    return apr_pstrdup(exchange->pool,
                       mdl_http_response_header(exchange->connection->easy, name, 0));
}

/* A code or a region that the store sent, fit for the log; "" for anything else. */
static const char *word_of(const apr_xml_elem *error, const char *name, apr_pool_t *p)
{
    const char *text = mdl_object_xml_text(error, name, p);
    apr_size_t length = strlen(text);

    return length <= MOST_CODE &&
                   strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789.-") == length
               ? text
               : "";
}

static void answer_read(mdl_object_exchange_t *exchange, mdl_object_answer_t *answer)
{
    const char *date = exchange_header(exchange, "Date");

    if (!mdl_http_response_length(exchange->connection->easy, &answer->size)) {
        answer->size = MDL_HTTP_UNTIL_CLOSE;
    }
    answer->status = exchange->status;
    answer->body = mdl_text_buffer_text(exchange->text, &answer->length);
    answer->etag = exchange_header(exchange, "ETag");
    if (!mdl_http_response_range(exchange->connection->easy, &answer->first, &answer->last,
                                 &answer->total)) {
        answer->total = -1;
    }
    answer->date = date != NULL ? apr_date_parse_http(date) : 0;
}

/* Reads the XML of an error, or of an answer that must be XML; *root gets its root, or NULL. */
static void answer_read_xml(mdl_object_exchange_t *exchange, mdl_object_answer_t *answer,
                            const apr_xml_elem **root)
{
    int good = status_is_good(answer->status);

    *root = NULL;
    if (answer->length == 0 || (good && exchange->request->root == NULL)) {
        return;
    }
    *root = mdl_object_xml_parse(answer->body, answer->length, exchange->pool);
    if (*root != NULL && strcmp((*root)->name, "Error") == 0) {
        answer->code = word_of(*root, "Code", exchange->pool);
        if (good && *answer->code == '\0') {
            answer->code = "Error";
        }
    } else if (*root != NULL && good && strcmp((*root)->name, exchange->request->root) == 0) {
        answer->xml = *root;
    }
}

/* The region to which the bucket belongs, if the store says so: " (eu-central-1)". */
static const char *answer_region(const mdl_object_exchange_t *exchange, const apr_xml_elem *root)
{
    const char *region = root != NULL ? word_of(root, "Region", exchange->pool) : "";
    const char *header = exchange_header(exchange, "x-amz-bucket-region");

    if (*region == '\0' && header != NULL && strlen(header) <= MOST_CODE &&
        strspn(header, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(header)) {
        region = header;
    }
    return *region != '\0' ? apr_pstrcat(exchange->pool, " (its region is ", region, ")", NULL)
                           : "";
}

static apr_status_t result_of_answer(mdl_object_exchange_t *exchange, mdl_object_answer_t *answer,
                                     const char **why, apr_pool_t *p)
{
    const char *host = mdl_object_store_host(exchange->store);
    const apr_xml_elem *root;
    const char *advice;
    apr_status_t rv;

    answer_read_xml(exchange, answer, &root);
    rv = mdl_object_class_of_answer(answer->status, answer->code, &advice);
    if (rv != APR_SUCCESS) {
        *why = apr_psprintf(p, "%s answered %d%s%s: %s%s.", host, answer->status,
                            *answer->code != '\0' ? " " : "", answer->code, advice,
                            rv == MDL_OBJECT_EDENIED ? answer_region(exchange, root) : "");
        return rv;
    }
    if (exchange->request->root != NULL && answer->xml == NULL) {
        *why = apr_psprintf(p,
                            "%s answered %d without S3's %s: is DownloadsObjectStore the address "
                            "of an S3 store?",
                            host, answer->status, exchange->request->root);
        return MDL_OBJECT_EDENIED;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_object_exchange_result(mdl_object_exchange_t *exchange,
                                        mdl_object_answer_t *answer, const char **why,
                                        apr_pool_t *p)
{
    const char *host = mdl_object_store_host(exchange->store);
    const char *predicate;
    apr_status_t rv;

    memset(answer, 0, sizeof *answer);
    answer->code = answer->body = "";
    answer->size = answer->total = -1;
    if (exchange->connection == NULL) {
        *why = "There is no memory for a request to the object store.";
        return MDL_OBJECT_EAWAY;
    }
    if (exchange->fault != APR_SUCCESS) {
        *why = apr_psprintf(p, "The bytes for %s can't be read here.", host);
        return exchange->fault;
    }
    if (exchange->status != 0) {
        answer_read(exchange, answer);
    }
    /* What an error says is read even if the connection breaks behind it. */
    if (exchange->status != 0 &&
        (!exchange->done || exchange->code == CURLE_OK || !status_is_good(exchange->status))) {
        return result_of_answer(exchange, answer, why, p);
    }
    if (exchange->too_large || exchange->header_bytes > MDL_HTTP_MAX_HEADERS) {
        *why = apr_psprintf(p, "%s sent too large an answer.", host);
        return MDL_OBJECT_EBROKEN;
    }
    if (exchange->code == CURLE_OK) {
        exchange->code = CURLE_GOT_NOTHING; /* a head that is cut is no error to libcurl */
    }
    rv = mdl_object_class_of_failure(exchange->connection->easy, exchange->code, &predicate);
    *why = apr_psprintf(p, "%s %s.", host, predicate);
    return rv;
}

apr_interval_time_t mdl_object_answer_age(const mdl_object_answer_t *answer, const char *date)
{
    apr_time_t now = answer->date > 0 ? answer->date : apr_time_now(), then;

    return mdl_clock_parse(&then, date) == APR_SUCCESS && then < now ? now - then : 0;
}
