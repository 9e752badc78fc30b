/*
 * The queue in which httpd's processes wait to write to SQLite.  db_faults.c tests that one process
 * writes at a time, with or without the queue.
 */
#include "t/unit/counter.h"

#include <signal.h>

#include <sqlite3.h>

#include "base/clock.h"

#define WRITES 20

static const database_t *database;
static mdl_db_t *db;

/* A process that writes on command, even while this process writes. */
typedef struct {
    pid_t pid;
    int begin; /* a byte written here makes it begin; it answers by began */
    int began;
    apr_int64_t expected; /* the expected counter; -1: any */
    int holds;            /* stay in the transaction until killed */
} writer_t;

static apr_status_t writer_effect(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const writer_t *writer = arg;
    apr_int64_t found;
    apr_status_t rv = read_count(on, p, &found);

    if (rv != APR_SUCCESS || (writer->expected >= 0 && found != writer->expected)) {
        return APR_EGENERAL;
    }
    rv = bump(on, p);
    if (writer->holds) {
        (void)!write(writer->began, "", 1);
        pause();
    }
    return rv;
}

static void writer_live(const writer_t *writer, apr_pool_t *p)
{
    mdl_db_t *own = database_open(database, p);
    char byte;

    (void)!read(writer->begin, &byte, 1);
    if (!writer->holds) {
        (void)!write(writer->began, "", 1);
    }
    child_end(mdl_db_write(own, writer_effect, (void *)writer, p) == APR_SUCCESS);
}

static writer_t writer_make(apr_int64_t expected, int holds, apr_pool_t *p)
{
    writer_t writer = {.expected = expected, .holds = holds};
    int begin[2], began[2];

    if (pipe(begin) != 0 || pipe(began) != 0) {
        exit(2);
    }
    if ((writer.pid = child_begin()) == 0) {
        writer.begin = begin[0];
        writer.began = began[1];
        writer_live(&writer, p);
    }
    close(begin[0]);
    close(began[1]);
    writer.begin = begin[1];
    writer.began = began[0];
    return writer;
}

static void writer_begin(const writer_t *writer)
{
    char byte;

    (void)!write(writer->begin, "", 1);
    (void)!read(writer->began, &byte, 1);
}

/* Makes the process begin, and waits until it sleeps, which it does only in the queue. */
static void writer_queue_up(const writer_t *writer, apr_pool_t *p)
{
    const char *path = apr_psprintf(p, "/proc/%d/stat", (int)writer->pid);
    char state = 0;

    writer_begin(writer);
    while (state != 'S') {
        FILE *file = fopen(path, "r");

        (void)!fscanf(file, "%*d %*s %c", &state);
        fclose(file);
    }
}

static void writer_kill(const writer_t *writer)
{
    int status;

    kill(writer->pid, SIGKILL);
    waitpid(writer->pid, &status, 0);
}

static int write_often(apr_pool_t *p)
{
    int good = 0;

    for (int i = 0; i < WRITES; i++) {
        good += mdl_db_write(db, bump_once, NULL, p) == APR_SUCCESS;
    }
    return good == WRITES;
}

/* An effect during which another process queues up. */
static apr_status_t meet_one(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    writer_queue_up(arg, p);
    return bump(on, p);
}

/* An effect during which two processes queue up and the first is killed. */
static apr_status_t meet_two(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const writer_t *writers = arg;

    writer_queue_up(&writers[0], p);
    writer_queue_up(&writers[1], p);
    writer_kill(&writers[0]);
    return bump(on, p);
}

static void test_turns(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    writer_t writer = writer_make(before + 1, 0, p);

    is_int(mdl_db_write(db, meet_one, &writer, p), APR_SUCCESS,
           "a process writes while another waits for its turn");
    ok(write_often(p), "and goes on writing");
    ok(child_good(writer.pid), "the one that waited had its turn after the first write");
    is_int(count(db, p), before + 2 + WRITES, "and no write is lost");
}

static void test_killed_in_queue(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    writer_t writers[] = {writer_make(-1, 0, p), writer_make(-1, 0, p)};

    mdl_db_write(db, meet_two, writers, p);
    ok(write_often(p), "a process goes on writing after the first in the queue was killed");
    ok(child_good(writers[1].pid), "and so does the second");
    is_int(count(db, p), before + 2 + WRITES, "and no write is lost");
}

static void test_killed_in_turn(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    writer_t holder = writer_make(-1, 1, p);
    writer_t next = writer_make(before, 0, p);

    writer_begin(&holder);
    writer_queue_up(&next, p);
    writer_kill(&holder);
    ok(child_good(next.pid), "when a process is killed while it writes, the next has its turn");
    is_int(count(db, p), before + 1, "the killed one's transaction is rolled back");
    ok(write_often(p), "everybody else can write");
}

static void test_stopped_in_turn(apr_pool_t *p)
{
    writer_t holder = writer_make(-1, 1, p);

    writer_begin(&holder);
    atomic_store(&monotonic_ahead, -4900000); /* of the 5 s, 0.1 s remain */
    is_int(mdl_db_write(db, bump_once, NULL, p), MDL_DB_EBUSY,
           "a process that writes for over 5 s gives the others MDL_DB_EBUSY");
    atomic_store(&monotonic_ahead, 0);
    writer_kill(&holder);
    ok(write_often(p), "after it they can write");
}

/* How long a write waits before MDL_DB_EBUSY; -1 for any other result. */
static apr_time_t time_until_busy(apr_pool_t *p)
{
    apr_time_t began = mdl_clock_monotonic();
    apr_status_t rv = mdl_db_write(db, bump_once, NULL, p);

    return rv == MDL_DB_EBUSY ? mdl_clock_monotonic() - began : -1;
}

/* The 5 s include both the wait in the queue and for a program that does not use it. */
static void test_other_program(apr_pool_t *p)
{
    sqlite3 *other;
    apr_time_t alone, second = -1;
    int tries = 0, good = 0;

    sqlite3_open(database->params, &other);
    sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    alone = time_until_busy(p);
    ok(alone > 0, "while another program writes, a write is busy in the end");
    /* Once more if the machine was busy: who waits for both has never the same time. */
    while (tries++ < 5 && (second < 0 || second >= alone * 3 / 2)) {
        writer_t first = writer_make(-1, 0, p);

        writer_queue_up(&first, p);
        apr_sleep(alone / 4); /* so that its turn comes before its timeout */
        second = time_until_busy(p);
        good += child_good(first.pid);
    }
    ok(second > 0 && second < alone * 3 / 2,
       "one that waits behind that of another process is busy after the same time");
    is_int(good, 0, "and so is that one");
    sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(other);
    ok(write_often(p), "after it they can write");
}

static void tests(const database_t *on, apr_pool_t *p)
{
    database = on;
    db = database_ready(database, p);
    if (mdl_db_share_writer_queue(p) != APR_SUCCESS) {
        exit(2);
    }
    test_turns(p);
    test_killed_in_queue(p);
    test_killed_in_turn(p);
    test_stopped_in_turn(p);
    test_other_program(p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_sqlite(tests, p);
    return tap_end(p);
}
