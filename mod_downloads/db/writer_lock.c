#include "db/writer_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <time.h>

#include <apr_shm.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/private.h"

#define NAP 100 /* microseconds */

/* Whoever waits for turn holds next, so a process that has just written can't overtake it.  Both
   mutexes are robust: they are released when their holder is killed. */
typedef struct {
    pthread_mutex_t next;
    pthread_mutex_t turn;
} queue_t;

static queue_t *queue; /* NULL outside httpd */

static apr_status_t queue_forget(void *data)
{
    (void)data;
    queue = NULL;
    return APR_SUCCESS;
}

apr_status_t mdl_db_share_writer_queue(apr_pool_t *p)
{
    pthread_mutexattr_t attributes;
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, sizeof *queue, NULL, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    queue = apr_shm_baseaddr_get(shm);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&queue->next, &attributes);
    pthread_mutex_init(&queue->turn, &attributes);
    pthread_mutexattr_destroy(&attributes);
    apr_pool_cleanup_register(p, NULL, queue_forget, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* Locks a mutex before the deadline; returns whether it did. */
static int mutex_lock(pthread_mutex_t *mutex, apr_time_t deadline)
{
    struct timespec until = {.tv_sec = apr_time_sec(deadline),
                             .tv_nsec = apr_time_usec(deadline) * 1000};
    int error = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);

    return (error == EOWNERDEAD ? pthread_mutex_consistent(mutex) : error) == 0;
}

static int queue_enter(apr_time_t deadline)
{
    int entered;

    if (!mutex_lock(&queue->next, deadline)) {
        return 0;
    }
    entered = mutex_lock(&queue->turn, deadline);
    pthread_mutex_unlock(&queue->next);
    return entered;
}

static apr_status_t busy(const mdl_db_t *db)
{
    mdl_log(MDL_LOG_WARNING, 0, "MDL0108: another process holds %s for over 5 s", db->lock_path);
    return MDL_DB_EBUSY;
}

static apr_status_t file_lock(mdl_db_t *db)
{
    if (db->lock_fd < 0) {
        db->lock_fd = open(db->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
        if (db->lock_fd < 0) {
            mdl_log(MDL_LOG_ERR, errno, "MDL0106: can't open the lock file %s", db->lock_path);
            return MDL_DB_EGONE;
        }
    }
    while (flock(db->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            mdl_log(MDL_LOG_ERR, errno, "MDL0107: can't lock %s", db->lock_path);
            return MDL_DB_EOTHER;
        }
        if (mdl_clock_monotonic() > db->patience) {
            return busy(db);
        }
        apr_sleep(NAP);
    }
    return APR_SUCCESS;
}

apr_status_t mdl_writer_lock(mdl_db_t *db)
{
    apr_status_t rv;

    if (db->lock_path == NULL) {
        return APR_SUCCESS;
    }
    if (queue != NULL && !queue_enter(db->patience)) {
        return busy(db);
    }
    rv = file_lock(db);
    if (rv != APR_SUCCESS && queue != NULL) {
        pthread_mutex_unlock(&queue->turn);
    }
    return rv;
}

void mdl_writer_unlock(const mdl_db_t *db)
{
    if (db->lock_path == NULL) {
        return;
    }
    flock(db->lock_fd, LOCK_UN);
    if (queue != NULL) {
        pthread_mutex_unlock(&queue->turn);
    }
}
