#include "base/mail/mailbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_cstr.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

#define MESSAGE_MAX    (256 * 1024)
#define ROUND_MAX      (8 * 1024 * 1024) /* bytes of an mbox read in one round */
#define STALE_LOCK     apr_time_from_sec(500)
#define OPEN_FLAGS     (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define SEPARATOR      "\n\nFrom "
#define SEPARATOR_SIZE (sizeof SEPARATOR - 1)

static const char seen[] = ":2,S"; /* the suffix of a processed message's name */
static const char maildir_prefix[] = "maildir:";
static const char mbox_prefix[] = "mbox:";

struct mdl_mailbox_t {
    const char *folder; /* of a Maildir, or NULL */
    const char *file;   /* the mbox, or NULL */
    char *buffer;       /* MESSAGE_MAX bytes */

    /* The position in the mbox, valid for the same inode. */
    ino_t inode;
    off_t offset;
    int within; /* offset is within a message that was processed, cut */

    struct stat lock;        /* another program's lock file, as last seen */
    apr_time_t locked_since; /* since when it is unchanged, by mdl_clock_monotonic */
};

/* One round of reading. */
typedef struct {
    mdl_mailbox_t *box;
    mdl_mailbox_take_fn *take;
    void *baton;
    int left;
    const char *why;
    apr_status_t error; /* of the mailbox; why describes it */
    apr_pool_t *p;
} round_t;

int mdl_mailbox_valid(const char *location, const char **why, apr_pool_t *p)
{
    const char *path = apr_cstr_skip_prefix(location, maildir_prefix);

    path = path != NULL ? path : apr_cstr_skip_prefix(location, mbox_prefix);
    if (path == NULL || path[0] != '/' || path[1] == '\0') {
        *why = apr_psprintf(p, "\"%s\" is neither maildir:/path nor mbox:/path.", location);
        return 0;
    }
    return 1;
}

mdl_mailbox_t *mdl_mailbox_create(const char *location, apr_pool_t *p)
{
    mdl_mailbox_t *box = apr_pcalloc(p, sizeof *box);

    box->folder = apr_cstr_skip_prefix(location, maildir_prefix);
    box->file = apr_cstr_skip_prefix(location, mbox_prefix);
    box->buffer = apr_palloc(p, MESSAGE_MAX);
    return box;
}

static apr_status_t round_fail(round_t *round, const char *what, const char *path, int error)
{
    char text[120];

    round->why = apr_psprintf(round->p, "%s %s: %s.", what, path,
                              apr_strerror(error, text, sizeof text));
    round->error = error;
    return error;
}

static apr_status_t round_hand_over(round_t *round, const char *message, apr_size_t length)
{
    apr_pool_t *p;
    apr_status_t rv = apr_pool_create(&p, round->p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    apr_pool_tag(p, "mdl_mailbox_message");
    rv = round->take(round->baton, message, length, p);
    apr_pool_destroy(p);
    return rv;
}

/* Reads up to MESSAGE_MAX bytes from an offset; -1 with errno. */
static ssize_t mailbox_read_at(const mdl_mailbox_t *box, int file, off_t offset)
{
    apr_size_t length = 0;

    while (length < MESSAGE_MAX) {
        ssize_t got = pread(file, box->buffer + length, MESSAGE_MAX - length,
                            offset + (off_t)length);

        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return -1;
        }
        length += got > 0 ? (apr_size_t)got : 0;
    }
    return (ssize_t)length;
}

/* Opens a regular file; -1 with errno, 0 if the path is not a regular file. */
static int open_regular(const char *path, int flags)
{
    int file = open(path, flags | OPEN_FLAGS);
    struct stat info;

    if (file < 0) {
        return errno == ELOOP || errno == ENXIO ? 0 : -1;
    }
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(file);
        return 0;
    }
    return file;
}

/* --- Maildir --- */

static apr_status_t message_put_away(round_t *round, const char *path, const char *name)
{
    const char *folder = apr_pstrcat(round->p, round->box->folder, "/cur", NULL);
    const char *taken = apr_pstrcat(round->p, folder, "/", name,
                                    strchr(name, ':') != NULL ? "" : seen, NULL);

    mkdir(folder, S_IRWXU);
    /* ENOENT: another node that reads the same mailbox was faster. */
    return rename(path, taken) != 0 && errno != ENOENT
               ? round_fail(round, "A message can't be moved to", taken, errno)
               : APR_SUCCESS;
}

/* Returns take's status; an error of the mailbox is noted in the round. */
static apr_status_t message_take(round_t *round, const char *name)
{
    const char *path = apr_pstrcat(round->p, round->box->folder, "/new/", name, NULL);
    int file = open_regular(path, O_RDONLY);
    ssize_t length;
    apr_status_t rv;

    if (file == 0 || (file < 0 && errno == ENOENT)) {
        return APR_SUCCESS;
    }
    if (file < 0) {
        round_fail(round, "A message can't be read:", path, errno);
        return APR_SUCCESS;
    }
    length = mailbox_read_at(round->box, file, 0);
    if (length < 0) {
        round_fail(round, "A message can't be read:", path, errno);
    }
    close(file);
    if (length < 0) {
        return APR_SUCCESS;
    }
    rv = round_hand_over(round, round->box->buffer, (apr_size_t)length);
    if (rv == APR_SUCCESS && message_put_away(round, path, name) == APR_SUCCESS) {
        round->left--;
    }
    return rv;
}

static apr_status_t maildir_read(round_t *round)
{
    const char *path = apr_pstrcat(round->p, round->box->folder, "/new", NULL);
    apr_status_t rv = APR_SUCCESS;
    const struct dirent *entry;
    DIR *folder = opendir(path);

    if (folder == NULL) {
        return errno == ENOENT ? APR_SUCCESS
                               : round_fail(round, "No folder of new mail:", path, errno);
    }
    while (rv == APR_SUCCESS && round->left > 0 && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            rv = message_take(round, entry->d_name);
        }
    }
    closedir(folder);
    return rv == APR_SUCCESS ? round->error : rv;
}

static int ends_with(const char *text, const char *end)
{
    apr_size_t length = strlen(text);

    return length > strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

void mdl_mailbox_clean(const mdl_mailbox_t *box, apr_time_t before, int limit, int *more,
                       apr_pool_t *p)
{
    const char *path = apr_pstrcat(p, box->folder != NULL ? box->folder : "", "/cur", NULL);
    DIR *folder = box->folder != NULL ? opendir(path) : NULL;
    const struct dirent *entry;
    struct stat info;

    while (folder != NULL && limit > 0 && (entry = readdir(folder)) != NULL) {
        if (ends_with(entry->d_name, seen) &&
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode) && apr_time_from_sec(info.st_mtim.tv_sec) < before &&
            unlinkat(dirfd(folder), entry->d_name, 0) == 0) {
            limit--;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    *more = limit == 0;
}

/* --- mbox --- */

static const char *mbox_lock_path(const mdl_mailbox_t *box, apr_pool_t *p)
{
    return apr_pstrcat(p, box->file, ".lock", NULL);
}

/* Whether the lock file is abandoned: unchanged for STALE_LOCK by the monotonic clock.  Its date is
   not compared with the wall clock, which may have been set. */
static int mbox_lock_is_stale(mdl_mailbox_t *box, const char *path)
{
    apr_time_t now = mdl_clock_monotonic();
    struct stat lock;

    if (lstat(path, &lock) != 0) {
        return 0;
    }
    if (lock.st_ino != box->lock.st_ino || lock.st_mtim.tv_sec != box->lock.st_mtim.tv_sec ||
        lock.st_mtim.tv_nsec != box->lock.st_mtim.tv_nsec) {
        box->lock = lock;
        box->locked_since = now;
    }
    return now - box->locked_since > STALE_LOCK;
}

/* Takes both locks that mail servers use (Debian policy 11.6), without waiting. */
static int mbox_lock(mdl_mailbox_t *box, int file, apr_pool_t *p)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const char *path = mbox_lock_path(box, p);
    int dot = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

    if (dot < 0 && errno == EEXIST) {
        if (mbox_lock_is_stale(box, path)) {
            unlink(path);
        }
        return 0;
    }
    if (dot >= 0) {
        close(dot);
    } else if (errno != EACCES && errno != EPERM && errno != EROFS) {
        return 0; /* without permission to make the lock file, fcntl's lock must do */
    }
    if (fcntl(file, F_SETLK, &whole) == 0) {
        return 1;
    }
    if (dot >= 0) {
        unlink(path);
    }
    return 0;
}

static void mbox_unlock(const mdl_mailbox_t *box, int file, apr_pool_t *p)
{
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    unlink(mbox_lock_path(box, p));
    fcntl(file, F_SETLK, &whole);
}

/* The buffer's content: a message, or a piece of one that is too long. */
typedef struct {
    const char *message; /* NULL: the piece is to be skipped */
    apr_size_t length;
    apr_size_t step; /* bytes to the next piece; 0: nothing was read */
    int within;
} piece_t;

/* The offset of the next message in a piece of an mbox; 0 if there is none. */
static apr_size_t next_message(const char *piece, apr_size_t length)
{
    const char *found = memmem(piece, length, SEPARATOR, SEPARATOR_SIZE);

    return found != NULL ? (apr_size_t)(found - piece) + 2 : 0;
}

static apr_status_t piece_read(round_t *round, int file, off_t size, piece_t *piece)
{
    const mdl_mailbox_t *box = round->box;
    ssize_t got = mailbox_read_at(box, file, box->offset);
    apr_size_t length, next, blank = 0;

    if (got <= 0) {
        return round_fail(round, "The mailbox can't be read:", box->file, got < 0 ? errno : EIO);
    }
    length = (apr_size_t)got;
    while (!box->within && blank < length && box->buffer[blank] == '\n') {
        blank++; /* it separates the next message from the previous one */
    }
    next = next_message(box->buffer + blank, length - blank);
    piece->step = next ? blank + next : length;
    piece->within = !next && box->offset + got < size;
    if (!box->within && length - blank > 5 && memcmp(box->buffer + blank, "From ", 5) == 0) {
        piece->message = box->buffer + blank;
        piece->length = piece->step - blank;
    }
    if (piece->within) {
        piece->step -= SEPARATOR_SIZE -
                       1; /* a separator may begin in this piece and end in the next */
    }
    return APR_SUCCESS;
}

/* Reads the next piece, or empties the file if everything was processed. */
static apr_status_t mbox_read_locked(round_t *round, int file, piece_t *piece)
{
    mdl_mailbox_t *box = round->box;
    struct stat info, named;

    /* The lock is useless if the file has been replaced. */
    if (fstat(file, &info) != 0 || stat(box->file, &named) != 0 || info.st_ino != named.st_ino) {
        return APR_SUCCESS;
    }
    if (info.st_ino != box->inode || info.st_size < box->offset) {
        box->inode = info.st_ino;
        box->offset = 0;
        box->within = 0;
    }
    if (box->offset < info.st_size) {
        return piece_read(round, file, info.st_size, piece);
    }
    if (info.st_size > 0 && ftruncate(file, 0) != 0) {
        return round_fail(round, "The mailbox can't be emptied:", box->file, errno);
    }
    box->offset = 0;
    box->within = 0;
    return APR_SUCCESS;
}

/* Piece by piece, unlocked while a piece is processed: mail servers soon give up on a lock. */
static apr_status_t mbox_read_pieces(round_t *round, int file)
{
    mdl_mailbox_t *box = round->box;
    apr_size_t looked = 0;
    apr_status_t rv = APR_SUCCESS;

    while (round->left > 0 && mbox_lock(box, file, round->p)) {
        piece_t piece = {.step = 0};

        rv = mbox_read_locked(round, file, &piece);
        mbox_unlock(box, file, round->p);
        if (rv == APR_SUCCESS && piece.message != NULL) {
            rv = round_hand_over(round, piece.message, piece.length);
            round->left--;
        }
        if (rv != APR_SUCCESS || piece.step == 0) {
            break;
        }
        box->offset += (off_t)piece.step;
        box->within = piece.within;
        looked += piece.step;
        if (looked >= ROUND_MAX) {
            round->left = 0; /* so that *more is true */
        }
    }
    return rv;
}

static apr_status_t mbox_read(round_t *round)
{
    const mdl_mailbox_t *box = round->box;
    int file = open_regular(box->file, O_RDWR);
    apr_status_t rv = APR_SUCCESS;
    struct stat info;

    if (file <= 0) {
        return file == 0 || errno == ENOENT
                   ? APR_SUCCESS
                   : round_fail(round, "The mailbox can't be opened:", box->file, errno);
    }
    if (fstat(file, &info) == 0 && info.st_size > 0) {
        rv = mbox_read_pieces(round, file);
    }
    close(file);
    return rv;
}

apr_status_t mdl_mailbox_read(mdl_mailbox_t *box, int limit, mdl_mailbox_take_fn *take, void *baton,
                              int *more, const char **why, apr_pool_t *p)
{
    round_t round = {.box = box, .take = take, .baton = baton, .left = limit, .p = p};
    apr_status_t rv = box->folder != NULL ? maildir_read(&round) : mbox_read(&round);

    *more = rv == APR_SUCCESS && round.left == 0;
    *why = round.why;
    return rv;
}

apr_status_t mdl_mailbox_check(const mdl_mailbox_t *box, const char **why, apr_pool_t *p)
{
    const char *const folders[] = {
        box->folder != NULL ? apr_pstrcat(p, box->folder, "/new", NULL) : NULL,
        box->folder != NULL ? apr_pstrcat(p, box->folder, "/cur", NULL) : NULL};
    const char *path = box->file;
    int bad = 0;

    if (box->file != NULL) {
        bad = faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0;
    }
    for (int i = 0; i < 2 && box->folder != NULL && !bad; i++) {
        path = folders[i];
        bad = faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) != 0;
    }
    if (bad) {
        round_t round = {.p = p};

        round_fail(&round, "Returned mail can't be read from", path, errno);
        *why = round.why;
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}
