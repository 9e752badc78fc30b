#include "db/writer.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "db/private.h"

static struct {
    pthread_mutex_t mutex;
    pid_t pid;        /* a forked child must not use its parent's connection */
    int connections;  /* of the process, the writer's included */
    mdl_db_t *db;     /* NULL: not open */
    apr_pool_t *pool; /* of db */
} writer = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void writer_hold(void)
{
    pthread_mutex_lock(&writer.mutex);
    if (writer.pid != getpid()) {
        writer.pid = getpid();
        writer.connections = 0;
        writer.db = NULL;
    }
}

/* Closes the connection after unlocking the mutex, because its clean-up calls mdl_writer_leave. */
static void writer_release(int close)
{
    apr_pool_t *closed = close && writer.db != NULL ? writer.pool : NULL;

    if (closed != NULL) {
        writer.db = NULL;
    }
    pthread_mutex_unlock(&writer.mutex);
    if (closed != NULL) {
        apr_pool_destroy(closed);
    }
}

void mdl_writer_join(void)
{
    writer_hold();
    writer.connections++;
    writer_release(0);
}

void mdl_writer_leave(void)
{
    writer_hold();
    writer.connections--;
    writer_release(writer.connections == 1);
}

void mdl_writer_lose(void)
{
    writer_hold();
    writer_release(1);
}

mdl_db_t *mdl_writer_take(mdl_db_t *db, mdl_writer_open_fn *open)
{
    apr_pool_t *pool;
    mdl_db_t *taken;

    writer_hold();
    writer_release(writer.db != NULL && (writer.db->file_id != db->file_id ||
                                         strcmp(writer.db->file_path, db->file_path) != 0));
    if (writer.db != NULL) {
        return writer.db;
    }
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_writer");
    if ((taken = open(db, pool)) == NULL) {
        apr_pool_destroy(pool);
        return db;
    }
    writer_hold();
    writer.db = taken;
    writer.pool = pool;
    writer_release(0);
    return taken;
}
