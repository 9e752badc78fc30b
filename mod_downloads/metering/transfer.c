#include "metering/transfer.h"

#include <stdatomic.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <http_ssl.h>
#include <util_filter.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/metrics.h"
#include "metering/socket_bytes.h"

#define MARKS       256          /* cover at least the last 16 MB, more than a kernel buffers */
#define HELD_BACK   (256 * 1024) /* bytes of a response that httpd and its TLS may hold back */
#define SETTLE_WAIT apr_time_from_sec(60)
#define SETTLE_MAX  apr_time_from_sec(600)
#define CUT_WAIT    apr_time_from_msec(2500)

/* The bytes that the connection had sent when the response reached a position. */
typedef struct {
    apr_uint64_t connection_bytes;
    apr_uint64_t position;
} mark_t;

/* A part of the body. */
typedef struct {
    apr_uint64_t position;
    apr_int64_t offset;
    apr_int64_t length;
    int at_once; /* it has arrived once any byte after position has */
} part_t;

struct mdl_transfer_t {
    mdl_transfer_t *next;
    mdl_transfer_t *previous;
    mdl_transfer_t *other;     /* the next of the connection's transfers */
    int references;            /* the ring's, and the request's until it is logged */
    mdl_session_delivery_t of; /* from its beginning; its texts are the following members */
    char id[MDL_TRANSFER_ID_LENGTH + 1];
    char session_id[32];
    char page_id[32];
    request_rec *r;           /* NULL unless running; ended transfers are in the other ring */
    const mdl_layout_t *body; /* NULL once it has ended */
    mdl_layout_t layout;      /* a permanent copy of the files that the parts touch */
    int layout_first;         /* the index in body of the copy's first file */
    mdl_socket_bytes_t *socket_bytes;
    int fd; /* a duplicate of the connection's socket, because httpd may close its own first */
    int is_stream;
    _Atomic int cut;
    apr_time_t cut_at;
    mdl_socket_progress_t progress;
    int progress_is_final;
    apr_time_t ended_at;
    apr_time_t moved_at;       /* when it ended, or a later acknowledgement came */
    apr_uint64_t bytes_at_end; /* of the connection, taken by the kernel when it ended */
    apr_uint64_t position;     /* bytes passed so far */
    int aborted;
    apr_int64_t reported; /* bytes last reported by mdl_transfer_moved */
    apr_int64_t reported_acknowledged;
    part_t *parts;
    int part_count;
    int part_room;
    mark_t first;
    mark_t *marks; /* a ring; NULL for plain HTTP/1.1, where bytes passed are bytes sent */
    int mark_count;
};

static struct {
    pthread_mutex_t mutex;
    mdl_transfer_t running; /* heads of rings */
    mdl_transfer_t ended;
    int is_over; /* nothing more is settled */
    mdl_transfer_wake_fn *wake;
} list = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
          .running = {.next = &list.running, .previous = &list.running},
          .ended = {.next = &list.ended, .previous = &list.ended}};

void mdl_transfer_on_change(mdl_transfer_wake_fn *wake)
{
    list.wake = wake;
}

static int ring_is_empty(const mdl_transfer_t *ring)
{
    return ring->next == ring;
}

static void transfer_append(mdl_transfer_t *transfer, mdl_transfer_t *ring)
{
    transfer->previous = ring->previous;
    transfer->next = ring;
    transfer->previous->next = transfer;
    ring->previous = transfer;
}

static void transfer_unlink(mdl_transfer_t *transfer)
{
    transfer->previous->next = transfer->next;
    transfer->next->previous = transfer->previous;
}

static void transfer_leave_connection(const mdl_transfer_t *transfer)
{
    mdl_transfer_t **link = mdl_socket_bytes_transfers(transfer->socket_bytes);

    while (*link != transfer) {
        link = &(*link)->other;
    }
    *link = transfer->other;
}

/* Under the mutex. */
static void transfer_release(mdl_transfer_t *transfer)
{
    if (--transfer->references == 0) {
        close(transfer->fd);
        mdl_socket_bytes_release(transfer->socket_bytes);
        free(transfer->marks);
        free(transfer->parts);
        free(transfer->layout.files);
        free(transfer);
    }
}

/*
 * The furthest position that the client can have after receiving connection_bytes.  Bytes passed
 * after a mark were sent after the mark's count, so the mark's position plus the bytes since is an
 * upper bound, and so is the next mark's position, which was passed before its count.
 */
static apr_uint64_t transfer_position_at(const mdl_transfer_t *transfer,
                                         apr_uint64_t connection_bytes)
{
    const mark_t *mark = &transfer->first;
    apr_uint64_t most = transfer->position, ahead;
    int oldest = transfer->mark_count > MARKS ? transfer->mark_count - MARKS : 0;

    for (int i = transfer->mark_count - 1; i >= oldest; i--) {
        const mark_t *candidate = &transfer->marks[i % MARKS];

        if (candidate->connection_bytes <= connection_bytes) {
            mark = candidate;
            break;
        }
        most = candidate->position;
    }
    ahead = connection_bytes > mark->connection_bytes ? connection_bytes - mark->connection_bytes
                                                      : 0;
    return mark->position + (ahead < most - mark->position ? ahead : most - mark->position);
}

/* The connection's byte count once the client has received all that was handed over. */
static apr_uint64_t transfer_handed_over(const mdl_transfer_t *transfer)
{
    if (transfer->r != NULL) {
        return mdl_socket_bytes_out(transfer->socket_bytes);
    }
    /* The connection may still buffer bytes of a stream that ended well. */
    return transfer->is_stream && !transfer->aborted ? UINT64_MAX : transfer->bytes_at_end;
}

/* Updates progress; true once it is final. */
static int transfer_ask(mdl_transfer_t *transfer)
{
    apr_uint64_t acknowledged = transfer->progress.acknowledged;
    apr_status_t rv;

    if (transfer->progress_is_final) {
        return 1;
    }
    rv = mdl_socket_bytes_ask(transfer->socket_bytes, transfer->fd, &transfer->progress);
    if (rv != APR_SUCCESS && rv != APR_ECONNABORTED) {
        transfer->progress.sent = transfer_handed_over(transfer);
    }
    if (transfer->progress.acknowledged != acknowledged) {
        transfer->moved_at = mdl_clock_monotonic();
    }
    return rv != APR_SUCCESS;
}

/* Resets the transfer's connection, after a final update of all transfers on it. */
static void transfer_reset(const mdl_transfer_t *one)
{
    for (mdl_transfer_t *transfer = *mdl_socket_bytes_transfers(one->socket_bytes);
         transfer != NULL; transfer = transfer->other) {
        transfer_ask(transfer);
        transfer->progress_is_final = 1;
    }
    mdl_socket_bytes_reset(one->fd);
}

/* The position that the client certainly has: plain HTTP/1.1 tells it to the byte.  With TLS and
   HTTP/2, httpd may hold bytes back that were passed before a mark. */
static apr_uint64_t transfer_position_known(const mdl_transfer_t *transfer)
{
    apr_uint64_t acknowledged = transfer->progress.acknowledged;
    apr_uint64_t most = transfer_position_at(transfer, acknowledged);
    int oldest = transfer->mark_count > MARKS ? transfer->mark_count - MARKS : 0;

    if (transfer->marks == NULL ||
        (most == transfer->position && transfer->r == NULL && !transfer->aborted)) {
        return most;
    }
    for (int i = transfer->mark_count - 1; i >= oldest; i--) {
        const mark_t *mark = &transfer->marks[i % MARKS];

        if (mark->connection_bytes <= acknowledged) {
            return mark->position > HELD_BACK ? mark->position - HELD_BACK : 0;
        }
    }
    return 0;
}

/* The bytes of a part up to a position of the response. */
static apr_int64_t part_length(const part_t *part, apr_uint64_t reached)
{
    apr_uint64_t length = reached > part->position ? reached - part->position : 0;

    return length > 0 && (part->at_once || length > (apr_uint64_t)part->length)
               ? part->length
               : (apr_int64_t)length;
}

/* The bytes delivered so far; final once progress is. */
static mdl_session_delivery_t transfer_delivery(const mdl_transfer_t *transfer, apr_pool_t *p)
{
    apr_uint64_t reached = transfer_position_at(transfer, transfer->progress.sent);
    apr_uint64_t known = transfer_position_known(transfer);
    mdl_coverage_t *coverage = mdl_coverage_make(p);
    mdl_session_delivery_t delivery = transfer->of;

    for (int i = 0; i < transfer->part_count; i++) {
        const part_t *part = &transfer->parts[i];
        apr_int64_t length = part_length(part, reached);

        mdl_coverage_add(coverage, part->offset, part->offset + length);
        delivery.bytes += length;
        delivery.handed_over += part->at_once ? length : 0;
        delivery.acknowledged += part->at_once ? 0 : part_length(part, known);
    }
    delivery.transfer_id = apr_pstrdup(p, transfer->id);
    delivery.session_id = apr_pstrdup(p, transfer->session_id);
    delivery.page_id = apr_pstrdup(p, transfer->page_id);
    delivery.files = mdl_progress_of(&transfer->layout, coverage, p);
    return delivery;
}

/* --- the request: begin, pass, end --- */

/* Under the mutex: notes that nothing more is handed over. */
static void transfer_end(mdl_transfer_t *transfer, int aborted)
{
    transfer->r = NULL;
    transfer->aborted = aborted;
    transfer->bytes_at_end = mdl_socket_bytes_out(transfer->socket_bytes);
    transfer->moved_at = transfer->ended_at = mdl_clock_monotonic();
    transfer_unlink(transfer);
    transfer_append(transfer, &list.ended);
    if (aborted && !transfer->is_stream) {
        transfer_reset(transfer);
    }
}

/* Runs when the request's pool is destroyed, after its last byte was handed to the kernel. */
static apr_status_t transfer_request_end(void *data)
{
    mdl_transfer_t *transfer = data;
    int is_running;

    if (pthread_mutex_lock(&list.mutex) != 0) {
        return APR_SUCCESS; /* in prefork's signal handler, this thread may hold the mutex */
    }
    is_running = transfer->r != NULL;
    if (is_running) {
        const conn_rec *c = transfer->r->connection;

        transfer_end(transfer,
                     transfer->cut || c->aborted || (c->master != NULL && c->master->aborted));
    }
    transfer_release(transfer);
    pthread_mutex_unlock(&list.mutex);
    if (is_running) {
        list.wake();
    }
    return APR_SUCCESS;
}

static void connection_flush(conn_rec *c)
{
    apr_bucket_brigade *brigade = apr_brigade_create(c->pool, c->bucket_alloc);

    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_flush_create(c->bucket_alloc));
    ap_pass_brigade(c->output_filters, brigade);
    apr_brigade_destroy(brigade);
}

mdl_transfer_t *mdl_transfer_make(request_rec *r)
{
    conn_rec *c = r->connection;
    mdl_socket_bytes_t *socket_bytes = mdl_socket_bytes_of(c);
    mdl_transfer_t *transfer;
    int fd;

    if (socket_bytes == NULL) {
        return NULL;
    }
    mdl_socket_bytes_retain(socket_bytes);
    if ((fd = fcntl(mdl_socket_bytes_socket(c), F_DUPFD_CLOEXEC, 0)) < 0) {
        mdl_log(MDL_LOG_ERR, errno,
                "MDL0414: a download was refused: no descriptor is left for it");
        mdl_socket_bytes_release(socket_bytes);
        return NULL;
    }
    transfer = ap_calloc(1, sizeof *transfer);
    transfer->references = 1;
    transfer->is_stream = c->master != NULL;
    transfer->socket_bytes = socket_bytes;
    transfer->fd = fd;
    transfer->reported = -1;
    if (transfer->is_stream || ap_ssl_conn_is_ssl(c)) {
        transfer->marks = ap_calloc(MARKS, sizeof(mark_t));
    }
    apr_pool_pre_cleanup_register(r->pool, transfer, transfer_request_end);
    if (!transfer->is_stream) {
        connection_flush(c);
    }
    return transfer;
}

void mdl_transfer_begin(mdl_transfer_t *transfer, request_rec *r, const mdl_session_delivery_t *of,
                        const mdl_layout_t *body)
{
    mdl_transfer_t **of_connection = mdl_socket_bytes_transfers(transfer->socket_bytes);
    int is_first;

    apr_cpystrn(transfer->id, of->transfer_id, sizeof transfer->id);
    apr_cpystrn(transfer->session_id, of->session_id, sizeof transfer->session_id);
    apr_cpystrn(transfer->page_id, of->page_id, sizeof transfer->page_id);
    transfer->of = *of;
    transfer->of.transfer_id = transfer->id;
    transfer->of.session_id = transfer->session_id;
    transfer->of.page_id = transfer->page_id;
    transfer->body = body;
    transfer->first.connection_bytes = mdl_socket_bytes_out(transfer->socket_bytes);
    mdl_socket_bytes_set_notsent_lowat(transfer->fd);
    pthread_mutex_lock(&list.mutex);
    transfer->r = r;
    transfer->references++;
    is_first = ring_is_empty(&list.running);
    transfer->cut = list.is_over;
    transfer_append(transfer, &list.running);
    transfer->other = *of_connection;
    *of_connection = transfer;
    pthread_mutex_unlock(&list.mutex);
    if (is_first) {
        list.wake();
    }
}

void mdl_transfer_mark(mdl_transfer_t *transfer)
{
    if (transfer->marks != NULL) {
        pthread_mutex_lock(&list.mutex);
        transfer->marks[transfer->mark_count++ % MARKS] = (mark_t){
            .connection_bytes = mdl_socket_bytes_out(transfer->socket_bytes),
            .position = transfer->position};
        pthread_mutex_unlock(&list.mutex);
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Copies the layout of the files with bytes between two offsets, and of all files between them and
   the copied files.  A growing copy at least doubles, because parts mostly follow each other. */
static void transfer_copy_layout(mdl_transfer_t *transfer, apr_int64_t from, apr_int64_t to)
{
    const mdl_layout_t *body = transfer->body;
    mdl_layout_t *copy = &transfer->layout, part;
    int first, end;

    if (body == NULL) {
        return;
    }
    part = mdl_layout_part(body, from, to);
    first = (int)(part.files - body->files);
    end = first + part.count;
    if (copy->count > 0) {
        int copied = transfer->layout_first + copy->count;

        if (first >= transfer->layout_first && end <= copied) {
            return;
        }
        first = least(first, transfer->layout_first);
        end = end > copied ? least(body->count, end + copy->count) : copied;
    }
    transfer->layout_first = first;
    copy->count = end - first;
    copy->files = ap_realloc(copy->files, (size_t)copy->count * sizeof *copy->files);
    memcpy(copy->files, body->files + first, (size_t)copy->count * sizeof *copy->files);
}

/* Under the mutex. */
static void transfer_append_part(mdl_transfer_t *transfer, part_t part)
{
    transfer_copy_layout(transfer, part.offset, part.offset + part.length);
    if (transfer->part_count == transfer->part_room) {
        transfer->part_room = 2 * transfer->part_room + 1;
        transfer->parts = ap_realloc(transfer->parts, (size_t)transfer->part_room * sizeof(part_t));
    }
    transfer->parts[transfer->part_count++] = part;
}

void mdl_transfer_add_part(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length)
{
    part_t *last = transfer->part_count > 0 ? &transfer->parts[transfer->part_count - 1] : NULL;

    pthread_mutex_lock(&list.mutex);
    if (last != NULL && last->position + (apr_uint64_t)last->length == transfer->position &&
        last->offset + last->length == offset) {
        transfer_copy_layout(transfer, offset, offset + length);
        last->length += length;
    } else {
        transfer_append_part(
            transfer, (part_t){.position = transfer->position, .offset = offset, .length = length});
    }
    transfer->position += (apr_uint64_t)length;
    pthread_mutex_unlock(&list.mutex);
}

void mdl_transfer_add_rest(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length)
{
    pthread_mutex_lock(&list.mutex);
    transfer_append_part(transfer,
                         (part_t){.position = transfer->position > 0 ? transfer->position - 1 : 0,
                                  .offset = offset,
                                  .length = length,
                                  .at_once = 1});
    pthread_mutex_unlock(&list.mutex);
}

void mdl_transfer_add_other(mdl_transfer_t *transfer, apr_uint64_t length)
{
    if (length > 0) {
        pthread_mutex_lock(&list.mutex);
        transfer->position += length;
        pthread_mutex_unlock(&list.mutex);
    }
}

void mdl_transfer_end_body(mdl_transfer_t *transfer)
{
    pthread_mutex_lock(&list.mutex);
    transfer->body = NULL;
    pthread_mutex_unlock(&list.mutex);
}

int mdl_transfer_is_cut(const mdl_transfer_t *transfer)
{
    return atomic_load(&transfer->cut);
}

/* --- for the settler --- */

/* Gives up a client that received nothing for long, or little for very long: it would keep a
   descriptor that httpd does not count.  The kernel's buffered bytes will not reach it any more; an
   HTTP/2 connection's buffered bytes still may. */
static void transfer_give_up(mdl_transfer_t *transfer)
{
    if (transfer->is_stream && transfer->progress.acknowledged >= transfer->bytes_at_end) {
        transfer->progress.sent = transfer_handed_over(transfer);
        transfer->progress_is_final = 1;
    } else {
        transfer_reset(transfer);
    }
}

/* Whether the delivery is final: all has arrived, or no more can. */
static int transfer_end_known(mdl_transfer_t *transfer, apr_time_t now)
{
    if (transfer_ask(transfer) ||
        transfer_position_at(transfer, transfer->progress.acknowledged) >= transfer->position ||
        (transfer->progress.acknowledged >= transfer->bytes_at_end &&
         (!transfer->is_stream || transfer->aborted))) {
        return 1;
    }
    if (now - transfer->moved_at > SETTLE_WAIT || now - transfer->ended_at > SETTLE_MAX) {
        transfer_give_up(transfer);
    }
    return transfer->progress_is_final;
}

void mdl_transfer_any(int *running, int *ended)
{
    pthread_mutex_lock(&list.mutex);
    *running = !ring_is_empty(&list.running);
    *ended = !ring_is_empty(&list.ended);
    pthread_mutex_unlock(&list.mutex);
}

/* Under the mutex: adds the progress of transfers with a row that moved, or of those without a row,
   limit at most. */
static void transfers_report(apr_array_header_t *deliveries, int unwritten, int limit)
{
    mdl_transfer_t *transfer, *next, *last = list.running.previous;

    for (transfer = list.running.next; transfer != &list.running && limit > 0; transfer = next) {
        mdl_session_delivery_t delivery;

        next = transfer == last ? &list.running : transfer->next;
        if (transfer->of.is_unwritten != unwritten) {
            continue;
        }
        transfer_ask(transfer);
        delivery = transfer_delivery(transfer, deliveries->pool);
        if (delivery.bytes != transfer->reported ||
            delivery.acknowledged != transfer->reported_acknowledged || unwritten) {
            transfer->reported = delivery.bytes;
            transfer->reported_acknowledged = delivery.acknowledged;
            APR_ARRAY_PUSH(deliveries, mdl_session_delivery_t) = delivery;
            limit--;
            /* to the end, so that the others are next */
            transfer_unlink(transfer);
            transfer_append(transfer, &list.running);
        }
    }
}

/* Reports transfers without a row separately, because only a row can show that access was lost. */
apr_array_header_t *mdl_transfer_moved(int limit, apr_pool_t *p)
{
    apr_array_header_t *deliveries = apr_array_make(p, 16, sizeof(mdl_session_delivery_t));

    pthread_mutex_lock(&list.mutex);
    transfers_report(deliveries, 1, limit);
    transfers_report(deliveries, 0, limit);
    pthread_mutex_unlock(&list.mutex);
    return deliveries;
}

apr_array_header_t *mdl_transfer_settled(int limit, int *waiting, apr_pool_t *p)
{
    apr_array_header_t *deliveries = apr_array_make(p, 16, sizeof(mdl_session_delivery_t));
    apr_time_t now = mdl_clock_monotonic();

    *waiting = 0;
    pthread_mutex_lock(&list.mutex);
    for (mdl_transfer_t *transfer = list.ended.next;
         transfer != &list.ended && deliveries->nelts < limit; transfer = transfer->next) {
        if (transfer_end_known(transfer, now)) {
            APR_ARRAY_PUSH(deliveries, mdl_session_delivery_t) = transfer_delivery(transfer, p);
        } else {
            ++*waiting;
        }
    }
    pthread_mutex_unlock(&list.mutex);
    return deliveries;
}

static mdl_transfer_t *transfer_find(mdl_transfer_t *ring, const char *id)
{
    mdl_transfer_t *transfer = ring->next;

    while (transfer != ring && strcmp(transfer->id, id) != 0) {
        transfer = transfer->next;
    }
    return transfer != ring ? transfer : NULL;
}

void mdl_transfer_written(const apr_array_header_t *deliveries)
{
    pthread_mutex_lock(&list.mutex);
    for (int i = 0; i < deliveries->nelts; i++) {
        const mdl_session_delivery_t *delivery = &APR_ARRAY_IDX(deliveries, i,
                                                                mdl_session_delivery_t);
        mdl_transfer_t *transfer = delivery->is_unwritten
                                       ? transfer_find(&list.running, delivery->transfer_id)
                                       : NULL;

        if (transfer != NULL) {
            transfer->of.is_unwritten = 0;
        }
    }
    pthread_mutex_unlock(&list.mutex);
}

void mdl_transfer_remove(const char *id)
{
    mdl_transfer_t *transfer;

    pthread_mutex_lock(&list.mutex);
    if ((transfer = transfer_find(&list.ended, id)) != NULL) {
        transfer_unlink(transfer);
        transfer_leave_connection(transfer);
        transfer_release(transfer);
    }
    pthread_mutex_unlock(&list.mutex);
}

int mdl_transfer_cut(const char *id)
{
    mdl_transfer_t *transfer;
    int is_new = 0;

    pthread_mutex_lock(&list.mutex);
    transfer = transfer_find(&list.running, id);
    if (transfer != NULL && !transfer->cut) {
        is_new = 1;
        mdl_metric_add(&mdl_metrics->downloads[MDL_DOWNLOAD_CUT], 1);
        transfer->cut_at = mdl_clock_monotonic();
        atomic_store(&transfer->cut, 1);
        if (!transfer->is_stream) {
            transfer_reset(transfer);
        }
    }
    pthread_mutex_unlock(&list.mutex);
    return is_new;
}

void mdl_transfer_end_all(void)
{
    mdl_transfer_t *transfer;

    pthread_mutex_lock(&list.mutex);
    list.is_over = 1;
    while (!ring_is_empty(&list.running)) {
        transfer = list.running.next;
        atomic_store(&transfer->cut, 1);
        transfer_end(transfer, 1);
        transfer_reset(transfer);
    }
    for (transfer = list.ended.next; transfer != &list.ended; transfer = transfer->next) {
        if (!transfer->progress_is_final) {
            transfer->progress.sent = transfer_handed_over(transfer);
            transfer->progress_is_final = 1;
        }
    }
    pthread_mutex_unlock(&list.mutex);
}

/* A stream whose client reads nothing waits inside httpd and does not notice that it was cut. */
void mdl_transfer_reset_stalled(void)
{
    apr_time_t now = mdl_clock_monotonic();

    pthread_mutex_lock(&list.mutex);
    for (mdl_transfer_t *transfer = list.running.next; transfer != &list.running;
         transfer = transfer->next) {
        if (transfer->cut && !transfer->progress_is_final && now - transfer->cut_at >= CUT_WAIT) {
            transfer_reset(transfer);
        }
    }
    pthread_mutex_unlock(&list.mutex);
}
