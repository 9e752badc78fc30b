/*
 * Reading a Maildir and an mbox while mail servers write into them.
 */
#include "t/unit/mail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/mail/mailbox.h"

static int ahead_s; /* of the monotonic clock */

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);

    now->tv_sec += clock == CLOCK_MONOTONIC ? ahead_s : 0;
    return failed;
}

/* The messages that were passed to take. */
typedef struct {
    int count;
    apr_size_t largest;
    char text[65536]; /* the first bytes of each message, concatenated */
    apr_status_t answer;
} taken_t;

static apr_status_t take(void *baton, const char *message, apr_size_t length, apr_pool_t *p)
{
    taken_t *taken = baton;

    (void)p;
    taken->count++;
    taken->largest = length > taken->largest ? length : taken->largest;
    strncat(taken->text, message, length < 100 ? length : 100);
    return taken->answer;
}

/* Reads until no message is left; returns the status of the last round. */
static apr_status_t drain(mdl_mailbox_t *box, taken_t *taken, apr_pool_t *p)
{
    apr_status_t answer = taken->answer;
    const char *why = NULL;
    apr_status_t rv;
    int more;

    memset(taken, 0, sizeof *taken);
    taken->answer = answer;
    do {
        rv = mdl_mailbox_read(box, 3, take, taken, &more, &why, p);
    } while (more);
    if (why != NULL) {
        printf("# %s\n", why);
    }
    return rv;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    fputs(text, file);
    fclose(file);
}

static apr_off_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? info.st_size : -1;
}

static void places(apr_pool_t *p)
{
    static const char *const bad[] = {
        "", "/path", "maildir:", "maildir:/", "mbox:relative", "mbox", "imap://host"};
    const char *why;

    ok(mdl_mailbox_valid("maildir:/a", &why, p) && mdl_mailbox_valid("mbox:/a", &why, p),
       "the places of a Maildir and of an mbox are valid");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(!mdl_mailbox_valid(bad[i], &why, p) && strstr(why, "maildir:/path"),
           apr_psprintf(p, "\"%s\" is invalid, and the message says what is valid", bad[i]));
    }
}

static void maildir(apr_pool_t *p)
{
    const char *root = in_folder("box", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "maildir:", root, NULL), p);
    taken_t *taken = apr_pcalloc(p, sizeof *taken);
    const char *why;

    is_int(drain(box, taken, p), APR_SUCCESS, "a Maildir that is not there yet is empty");
    ok(mdl_mailbox_check(box, &why, p) != APR_SUCCESS && strstr(why, "/new"),
       "the check reports that it is missing");
    mkdir(root, 0700);
    mkdir(in_folder("box/new", p), 0700);
    for (int i = 0; i < 10; i++) {
        put(in_folder(apr_psprintf(p, "box/new/%d.a:b", i), p), "A message\n");
    }
    put(in_folder("box/new/plain", p), "A message\n");
    put(in_folder("box/new/.hidden", p), "none\n");
    put(in_folder("secret", p), "none of its business\n");
    ok(symlink(in_folder("secret", p), in_folder("box/new/link", p)) == 0 &&
           mkdir(in_folder("box/new/folder", p), 0700) == 0 &&
           mkfifo(in_folder("box/new/pipe", p), 0600) == 0,
       "a link, a folder and a pipe are in it");
    taken->answer = APR_EGENERAL;
    is_int(drain(box, taken, p), APR_EGENERAL, "the status of take is returned");
    is_int(taken->count, 1, "an error of take ends the round");
    taken->answer = APR_SUCCESS;
    is_int(drain(box, taken, p), APR_SUCCESS, "the next round succeeds");
    is_int(taken->count, 11, "it reads every message, and nothing else");
    ok(!strstr(taken->text, "none"), "no link is followed");
    ok(size_of(in_folder("box/cur/plain:2,S", p)) > 0 && size_of(in_folder("box/cur/3.a:b", p)) > 0,
       "messages that were read are in cur/");
    is_int(drain(box, taken, p), APR_SUCCESS, "a further round succeeds");
    is_int(taken->count, 0, "it finds no message");
    is_int(mdl_mailbox_check(box, &why, p), APR_SUCCESS,
           "the check of a complete Maildir succeeds");
}

/* A message's age is that of its file. */
static void cleaned(apr_pool_t *p)
{
    mdl_mailbox_t *box = mdl_mailbox_create(
        apr_pstrcat(p, "maildir:", in_folder("cleaned", p), NULL), p);
    static const char *const names[] = {"cur/a:2,S", "cur/b:2,S", "cur/c:2,S", "cur/kept:2,",
                                        "new/new"};
    struct timespec old[] = {{1000000000, 0}, {1000000000, 0}};
    apr_time_t before = apr_time_from_sec(1000000001);
    int more;

    mdl_mailbox_clean(box, before, 2, &more, p);
    ok(!more, "a Maildir that is not there has nothing to remove");
    mkdir(in_folder("cleaned", p), 0700);
    mkdir(in_folder("cleaned/cur", p), 0700);
    mkdir(in_folder("cleaned/new", p), 0700);
    for (int i = 0; i < 5; i++) {
        const char *path = in_folder(apr_pstrcat(p, "cleaned/", names[i], NULL), p);

        put(path, "A message\n");
        utimensat(AT_FDCWD, path, old, 0);
    }
    put(in_folder("cleaned/cur/young:2,S", p), "A message\n");
    mdl_mailbox_clean(box, before - apr_time_from_sec(1), 2, &more, p);
    ok(!more && size_of(in_folder("cleaned/cur/a:2,S", p)) > 0, "what is young stays");
    mdl_mailbox_clean(box, before, 2, &more, p);
    ok(more, "messages that were read are removed, a few at a time");
    mdl_mailbox_clean(box, before, 2, &more, p);
    ok(!more && size_of(in_folder("cleaned/cur/a:2,S", p)) < 0 &&
           size_of(in_folder("cleaned/cur/b:2,S", p)) < 0 &&
           size_of(in_folder("cleaned/cur/c:2,S", p)) < 0,
       "then all that are old are gone");
    ok(size_of(in_folder("cleaned/cur/young:2,S", p)) > 0, "a young one is there");
    ok(size_of(in_folder("cleaned/cur/kept:2,", p)) > 0 &&
           size_of(in_folder("cleaned/new/new", p)) > 0,
       "and those that were not read are");
}

static void unreadable(apr_pool_t *p)
{
    const char *root = in_folder("foreign", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "maildir:", root, NULL), p);
    taken_t *taken = apr_pcalloc(p, sizeof *taken);
    const char *bad = in_folder("foreign/new/bad", p);

    if (geteuid() == 0) {
        ok(1, "# skip file modes mean nothing to root");
        return;
    }
    mkdir(root, 0700);
    mkdir(in_folder("foreign/new", p), 0700);
    put(bad, "A message\n");
    chmod(bad, 0);
    put(in_folder("foreign/new/good", p), "A message\n");
    ok(drain(box, taken, p) == EACCES && taken->count == 1,
       "an unreadable message is reported, and the others are read");
}

static void mbox(apr_pool_t *p)
{
    const char *path = in_folder("mbox", p);
    const char *dot = in_folder("mbox.lock", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "mbox:", path, NULL), p);
    taken_t *taken = apr_pcalloc(p, sizeof *taken);
    struct timespec old[] = {{1000000000, 0}, {1000000000, 0}};

    is_int(drain(box, taken, p), APR_SUCCESS, "an mbox that is not there yet is empty");
    for (int i = 0; i < 10; i++) {
        put(path, apr_psprintf(p, "From a@b.test Sat Nov 21\nSubject: %d\n\n>From x\ntext\n\n", i));
    }
    taken->answer = APR_EGENERAL;
    drain(box, taken, p);
    ok(size_of(path) > 0, "messages that were not taken stay");
    ok(size_of(dot) < 0, "no lock is left behind");
    put(dot, "");
    taken->answer = APR_SUCCESS;
    drain(box, taken, p);
    is_int(taken->count, 0, "nothing is read while another program holds the lock");
    utimensat(AT_FDCWD, dot, old, 0);
    drain(box, taken, p);
    is_int(taken->count, 0, "nor when its date is long past, as after the clock was set");
    ahead_s += 499;
    drain(box, taken, p);
    is_int(taken->count, 0, "nor for eight minutes");
    ahead_s += 2;
    drain(box, taken, p);
    drain(box, taken, p);
    is_int(taken->count, 10, "a stale lock is removed, and all messages are read");
    ok(strstr(taken->text, "Subject: 0") && strstr(taken->text, "Subject: 9"),
       "the first and the last message are read");
    is_int(size_of(path), 0, "the file is emptied");
    put(path, "not an mbox at all\n\nbut\n\nFrom a@b.test\n\nlast");
    drain(box, taken, p);
    is_str(taken->text, "From a@b.test\n\nlast", "text before the first message is skipped");
    is_int(size_of(path), 0, "the skipped text is removed");
}

/* fcntl's locks belong to a process, so a child holds this one. */
static void locked(apr_pool_t *p)
{
    const char *path = in_folder("locked", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "mbox:", path, NULL), p);
    taken_t *taken = apr_pcalloc(p, sizeof *taken);
    char byte = 0;
    int ends[2];
    pid_t other;

    put(path, "From a@b.test\n\ntext\n");
    if (pipe(ends) != 0) {
        ok(0, "a pipe can be made");
        return;
    }
    other = fork();
    if (other == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int file = open(path, O_RDWR);

        byte = fcntl(file, F_SETLK, &whole) == 0;
        if (write(ends[1], &byte, 1) == 1) {
            pause();
        }
        _exit(0);
    }
    ok(read(ends[0], &byte, 1) == 1 && byte, "another process holds the lock of fcntl");
    drain(box, taken, p);
    is_int(taken->count, 0, "nothing is read");
    ok(size_of(in_folder("locked.lock", p)) < 0, "the dot lock is released");
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    drain(box, taken, p);
    is_int(taken->count, 1, "the message is read when the lock is free");
    close(ends[0]);
    close(ends[1]);
}

/* Takes both locks and appends a message, as a mail server's process does. */
static int deliver(const char *path, const char *text)
{
    int status = -1;
    pid_t server = fork();

    if (server == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        char dot[300];
        int file = open(path, O_RDWR | O_APPEND);

        snprintf(dot, sizeof dot, "%s.lock", path);
        if (open(dot, O_WRONLY | O_CREAT | O_EXCL, 0600) < 0 || fcntl(file, F_SETLK, &whole) != 0) {
            _exit(1);
        }
        status = write(file, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 2;
        _exit(unlink(dot) == 0 ? status : 3);
    }
    return waitpid(server, &status, 0) == server && status == 0;
}

/* Takes messages while others are delivered. */
typedef struct {
    const char *path;
    const char *const *texts; /* ended by NULL */
    int delivered;
    int taken;
    int readable; /* messages that begin with a From line */
} visited_t;

static apr_status_t take_visited(void *baton, const char *message, apr_size_t length, apr_pool_t *p)
{
    visited_t *visited = baton;

    (void)p;
    visited->taken++;
    visited->readable += length > 5 && memcmp(message, "From ", 5) == 0;
    if (*visited->texts != NULL) {
        visited->delivered += deliver(visited->path, *visited->texts++);
    }
    return APR_SUCCESS;
}

static void delivered_meanwhile(apr_pool_t *p)
{
    static const char *const texts[] = {"From c@d.test\n\ntwo\n\n", "From c@d.test\n\nthree\n",
                                        "\nFrom c@d.test\n\nfour\n", "\n\nFrom c@d.test\n\nfive",
                                        NULL};
    const char *path = in_folder("visited", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "mbox:", path, NULL), p);
    visited_t visited = {.path = path, .texts = texts};
    const char *why;
    int more;

    put(path, "From a@b.test\n\none\n\n");
    do {
        mdl_mailbox_read(box, 20, take_visited, &visited, &more, &why, p);
    } while (more);
    is_int(visited.delivered, 4, "a mail server can deliver while a message is taken");
    is_int(visited.taken, 5, "messages delivered meanwhile are taken, too");
    is_int(visited.readable, 5, "each message is read from its beginning");
    is_int(size_of(path), 0, "the file is empty afterwards");
}

static void large(apr_pool_t *p)
{
    const char *path = in_folder("large", p);
    mdl_mailbox_t *box = mdl_mailbox_create(apr_pstrcat(p, "mbox:", path, NULL), p);
    taken_t *taken = apr_pcalloc(p, sizeof *taken);
    FILE *file = fopen(path, "w");

    fputs("From a@b.test\nSubject: big\n\n", file);
    for (int i = 0; i < 3 * 1024 * 1024; i++) {
        fputs(i % 60 ? "x" : "\n\n", file);
    }
    fputs("\n\nFrom c@d.test\nSubject: small\n\ntext\n", file);
    fclose(file);
    drain(box, taken, p);
    is_int(taken->count, 2, "a message of 3 MB and a small one are read as two");
    is_int(taken->largest, 256 * 1024, "no more than 256 KiB of a message is handed over");
    ok(strstr(taken->text, "Subject: small"), "the small message after it is read");
    is_int(size_of(path), 0, "the file is emptied after that");

    /* Puts the separator at each offset around the end of the first buffer. */
    for (int i = 0; i < 10; i++) {
        file = fopen(path, "w");
        fputs("From a@b.test\n\n", file);
        for (int j = 15; j < 256 * 1024 - i; j++) {
            fputc('x', file);
        }
        fputs("\n\nFrom c@d.test\n\ntext\n", file);
        fclose(file);
        drain(box, taken, p);
        if (taken->count != 2) {
            break;
        }
    }
    is_int(taken->count, 2, "two messages are found when a buffer ends within their separator");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    if (begin_folder(p)) {
        places(p);
        maildir(p);
        cleaned(p);
        unreadable(p);
        mbox(p);
        locked(p);
        delivered_meanwhile(p);
        large(p);
        remove_tree(folder);
    }
    return tap_end(p);
}
