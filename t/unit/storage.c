#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/zip/crc32.h"
#include "storage/storage.h"
#include "t/unit/program.h"
#include "t/unit/tap.h"

#define MIB 1048576

/* What statvfs says is free, in blocks of a kilobyte. */
static fsblkcnt_t kilobytes_free = 1 << 30;

__attribute__((visibility("default"))) int statvfs(const char *path, struct statvfs *fs)
{
    (void)path;
    *fs = (struct statvfs){
        .f_bsize = 4096, .f_frsize = 1024, .f_bfree = 1 << 30, .f_bavail = kilobytes_free};
    return 0;
}

static apr_pool_t *p;
static char folder[256];
static mdl_storage_t *storage;

static const char *sha256sum(const char *path)
{
    return output_of(apr_psprintf(p, "sha256sum < '%s' | cut -c 1-64", path), p);
}

static const char *zlib_crc32(const char *path)
{
    const char *program = "import sys, zlib; print(zlib.crc32(sys.stdin.buffer.read()))";

    return output_of(apr_psprintf(p, "/usr/bin/python3 -c '%s' < '%s'", program, path), p);
}

static const char *in_folder(const char *name)
{
    return apr_pstrcat(p, folder, "/", name, NULL);
}

static int exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static int mode_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static apr_int64_t size_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (apr_int64_t)st.st_size : -1;
}

static int holds(const char *path, const char *data, apr_size_t length)
{
    char *bytes = malloc(length + 1);
    FILE *file = fopen(path, "rb");
    int same = bytes != NULL && file != NULL && fread(bytes, 1, length + 1, file) == length &&
               memcmp(bytes, data, length) == 0;

    if (file != NULL) {
        fclose(file);
    }
    free(bytes);
    return same;
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = -2; /* "." and ".." */

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static int descriptors(void)
{
    return entries("/proc/self/fd");
}

/* Pseudo-random bytes, whose period is not a power of two. */
static const char *noise(apr_size_t length)
{
    char *bytes = apr_palloc(p, length);
    unsigned int state = 12345;

    for (apr_size_t i = 0; i < length; i++) {
        state = state * 1103515245U + 12345U;
        bytes[i] = (char)(state >> 16);
    }
    return bytes;
}

static mdl_partial_t *open_partial(const char *id)
{
    mdl_partial_t *partial = NULL;

    mdl_partial_open(&partial, storage, id, NULL, NULL, p);
    return partial;
}

static apr_status_t store(const char *id, const char *data, apr_size_t length, mdl_blob_t *blob)
{
    mdl_partial_t *partial = open_partial(id);
    apr_status_t rv = mdl_partial_write(partial, data, length);

    if (rv == APR_SUCCESS) {
        rv = mdl_partial_digest(partial, blob, p);
    }
    if (rv != APR_SUCCESS) {
        mdl_partial_discard(partial);
        return rv;
    }
    return mdl_partial_commit(partial, blob);
}

static void folders_are_made(void)
{
    mdl_storage_t *none;

    is_int(mdl_storage_open(&storage, folder, 0, p), APR_SUCCESS, "an empty folder is opened");
    is_int(entries(in_folder("blobs")), 16, "it has 16 folders of blobs");
    is_int(mode_of(in_folder("blobs/f")), 0750, "they are closed to others");
    is_int(mode_of(in_folder("partial")), 0750, "the folder of partial files is closed to others");
    is_int(mdl_storage_open(&storage, folder, 0, p), APR_SUCCESS, "the folder is opened again");
    is_int(mdl_storage_check(storage, p), APR_SUCCESS, "the check succeeds");
    is_int(entries(in_folder("partial")), 0, "the check leaves nothing behind");
    is_int(mdl_storage_open(&none, in_folder("missing"), 0, p), APR_ENOENT,
           "a missing folder is absent");
    ok(!none, "no storage is returned for a missing folder");
    mkdir(in_folder("odd"), 0700);
    close(open(in_folder("odd/blobs"), O_CREAT | O_WRONLY, 0600));
    is_int(mdl_storage_open(&none, in_folder("odd"), 0, p), APR_ENOTDIR,
           "a file in the place of a folder is refused");
    rmdir(in_folder("blobs/7"));
    is_int(mdl_storage_check(storage, p), APR_ENOENT,
           "the check reports a missing folder of blobs");
    is_int(mdl_storage_open(&storage, folder, 0, p), APR_SUCCESS,
           "the storage is opened without that folder");
    ok(exists(in_folder("blobs/7")), "opening makes the missing folder");
}

static void names_are_checked(void)
{
    static const char *bad[] = {"",       ".",        "..",        "../x", "a/b",
                                "/etc/x", "a.b",      "A",         "a b",  "a-b",
                                "a\n",    "\xC3\xA9", "a/../../x", "~",    ".check"};
    mdl_partial_t *partial;
    int refused = 0;
    int removed = 0;

    for (apr_size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused += mdl_partial_open(&partial, storage, bad[i], NULL, NULL, p) == APR_EINVAL &&
                   partial == NULL;
        removed += mdl_partial_remove(storage, bad[i], p) != APR_EINVAL;
    }
    is_int(refused, sizeof bad / sizeof *bad, "an id that could be a path is refused");
    is_int(removed, 0, "such an id is refused for removal, too");
    ok(!mdl_storage_path(storage, "../../../../etc/passwd", p), "an invalid digest has no path");
    ok(!mdl_storage_path(storage,
                         "../3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", p),
       "a digest with a path in it has no path");
    is_str(mdl_storage_path(storage,
                            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", p),
           in_folder("blobs/0/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
           "a digest's path begins with its first digit");
    ok(!mdl_storage_path(storage,
                         "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", p),
       "a digest in upper case has no path");
}

static void digests_are_right(apr_size_t length, const char *name)
{
    const char *data = noise(length);
    mdl_partial_t *partial = open_partial("job_digest");
    const char *path = in_folder("partial/job_digest");
    mdl_blob_t blob = {0};
    apr_size_t at = 0;

    for (apr_size_t n = 1; at < length; n = n * 7 % 16384 + 1) {
        n = n < length - at ? n : length - at;
        mdl_partial_write(partial, data + at, n);
        at += n;
    }
    is_int(mdl_partial_size(partial), length, name);
    is_int(mdl_partial_digest(partial, &blob, p), APR_SUCCESS, "it is digested");
    is_int(blob.size, length, "the digest's size is that of the file");
    is_int(size_of(path), length, "the partial file has all bytes");
    is_str(sha256sum(path), blob.sha256, "the digest is the one that sha256sum(1) computes");
    is_str(zlib_crc32(path), apr_psprintf(p, "%u", blob.crc32),
           "the CRC-32 is the one that zlib computes");
    is_int(mdl_partial_write(partial, "x", 1), APR_EINVAL, "nothing is appended afterwards");
    is_int(mdl_partial_digest(partial, &blob, p), APR_SUCCESS, "it can be digested once more");
    is_str(sha256sum(path), blob.sha256, "the digest is the same");
    is_int(mdl_partial_commit(partial, &blob), APR_SUCCESS, "it becomes a blob");
    path = mdl_storage_path(storage, blob.sha256, p);
    is_int(size_of(path), length, "the blob is at its path");
    ok(holds(path, data, length), "the blob has all bytes");
    is_int(mode_of(path), 0640, "the blob can be read by the group, not by others");
    ok(!exists(in_folder("partial/job_digest")), "the partial file is gone");
}

static void a_transfer_is_resumed(void)
{
    apr_size_t length = 3 * MIB + 77;
    apr_size_t half = MIB + 1234;
    const char *data = noise(length);
    mdl_partial_t *partial = open_partial("job_resume");
    mdl_blob_t blob = {0};

    mdl_partial_write(partial, data, half);
    is_int(mdl_partial_keep(partial), APR_SUCCESS, "a partial file is kept");
    is_int(size_of(in_folder("partial/job_resume")), (apr_int64_t)half,
           "the kept file has all bytes that were written");
    partial = open_partial("job_resume");
    is_int(mdl_partial_size(partial), half, "it has its size when it is opened again");
    mdl_partial_write(partial, data + half, length - half);
    is_int(mdl_partial_digest(partial, &blob, p), APR_SUCCESS, "the rest is appended");
    ok(holds(in_folder("partial/job_resume"), data, length), "the file is whole");
    is_str(sha256sum(in_folder("partial/job_resume")), blob.sha256,
           "the digest is that of the whole file");
    is_str(zlib_crc32(in_folder("partial/job_resume")), apr_psprintf(p, "%u", blob.crc32),
           "the CRC-32 is that of the whole file");
    is_int(mdl_partial_truncate(partial, 0), APR_SUCCESS, "the file is truncated to nothing");
    is_int(mdl_partial_size(partial), 0, "its size is 0");
    is_int(size_of(in_folder("partial/job_resume")), 0, "its size on disk is 0");
    mdl_partial_write(partial, "abc", 3);
    mdl_partial_digest(partial, &blob, p);
    is_str(blob.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
           "the digest is that of the new bytes");
    is_int(blob.crc32, 0x352441C2, "the CRC-32 is that of the new bytes");
    mdl_partial_discard(partial);
    ok(!exists(in_folder("partial/job_resume")), "a discarded file is gone");
}

static mdl_partial_t *append_partial(const char *id)
{
    mdl_partial_t *partial = NULL;

    mdl_partial_append(&partial, storage, id, p);
    return partial;
}

static void pieces_are_appended(void)
{
    apr_size_t length = 3 * MIB + 77;
    apr_size_t half = MIB + 1234;
    const char *data = noise(length);
    mdl_partial_t *partial = append_partial("upl_pieces");
    mdl_partial_t *second;
    mdl_blob_t blob = {0};
    apr_int64_t size = -1;

    is_int(mdl_partial_length(storage, "upl_none", &size, p), APR_ENOENT,
           "a missing file has no length");
    ok(mdl_partial_hashed(partial), "an empty file is hashed while it grows");
    mdl_partial_write(partial, data, half);
    is_int(mdl_partial_append(&second, storage, "upl_pieces", p), APR_EAGAIN,
           "only one process appends at a time");
    mdl_partial_keep(partial);
    is_int(mdl_partial_length(storage, "upl_pieces", &size, p), APR_SUCCESS,
           "a file's length is read");
    is_int(size, half, "its length is known without opening it");
    partial = append_partial("upl_pieces");
    is_int(mdl_partial_size(partial), half, "it has its size when it is opened for another piece");
    ok(!mdl_partial_hashed(partial), "its digest is not continued");
    mdl_partial_write(partial, data + half, length - half);
    is_int(mdl_partial_digest(partial, &blob, p), APR_EINVAL, "it has no digest");
    is_int(mdl_partial_truncate(partial, (apr_int64_t)half + 5), APR_SUCCESS,
           "the file is truncated within the new piece");
    is_int(mdl_partial_size(partial), half + 5, "it has that size");
    is_int(mdl_partial_truncate(partial, MIB), APR_SUCCESS,
           "the file is truncated below its earlier size");
    mdl_partial_write(partial, data + MIB, length - MIB);
    mdl_partial_keep(partial);
    ok(holds(in_folder("partial/upl_pieces"), data, length), "the next piece is appended there");
    partial = append_partial("upl_pieces");
    is_int(mdl_partial_truncate(partial, 0), APR_SUCCESS,
           "a file of pieces is truncated to nothing");
    mdl_partial_write(partial, "abcde", 5);
    is_int(mdl_partial_truncate(partial, 3), APR_SUCCESS,
           "bytes that are still in the buffer are truncated");
    ok(mdl_partial_hashed(partial), "a file truncated to nothing is hashed again");
    is_int(mdl_partial_digest(partial, &blob, p), APR_SUCCESS, "it has a digest");
    is_str(blob.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
           "its digest is right");
    mdl_partial_discard(partial);
}

static apr_int64_t length_of(const char *id)
{
    apr_int64_t length = -1;

    mdl_partial_length(storage, id, &length, p);
    return length;
}

static void what_is_in_doubt_does_not_count(void)
{
    mdl_partial_t *partial;

    mdl_partial_append(&partial, storage, "doubt", p);
    mdl_partial_write(partial, "sure ", 5);
    mdl_partial_keep(partial);
    mdl_partial_append(&partial, storage, "doubt", p);
    is_int(mdl_partial_mark(partial), APR_SUCCESS, "a mark is set");
    mdl_partial_write(partial, "doubtful", 8);
    mdl_partial_keep(partial); /* as a process does that is killed */
    is_int(size_of(in_folder("partial/doubt")), 13, "what is behind a mark is written");
    is_int(length_of("doubt"), 5, "it does not count");
    mdl_partial_append(&partial, storage, "doubt", p);
    is_int(mdl_partial_size(partial), 5, "it is thrown away when the file is opened again");
    mdl_partial_write(partial, "new", 3);
    mdl_partial_keep(partial);
    is_int(length_of("doubt"), 8, "what comes then counts");

    mdl_partial_append(&partial, storage, "doubt", p);
    mdl_partial_mark(partial);
    mdl_partial_write(partial, "!", 1);
    is_int(mdl_partial_accept(partial), APR_SUCCESS, "what is behind a mark is accepted");
    mdl_partial_keep(partial);
    is_int(length_of("doubt"), 9, "and counts");

    mdl_partial_append(&partial, storage, "doubt", p);
    mdl_partial_mark(partial);
    mdl_partial_keep(partial);
    mdl_partial_remove(storage, "doubt", p);
    is_int(entries(in_folder("partial")), 0, "a mark is removed with its file");
    mdl_partial_append(&partial, storage, "doubt", p);
    mdl_partial_mark(partial);
    mdl_partial_discard(partial);
    is_int(entries(in_folder("partial")), 0, "and discarded with it");
}

static void a_published_file_stays(void)
{
    mdl_partial_t *partial = append_partial("upl_published");
    apr_array_header_t *ids = NULL;
    mdl_blob_t blob = {0};
    const char *path;

    mdl_partial_write(partial, "published", 9);
    mdl_partial_digest(partial, &blob, p);
    is_int(mdl_partial_publish(partial, &blob), APR_SUCCESS, "a file is published");
    path = mdl_storage_path(storage, blob.sha256, p);
    ok(holds(path, "published", 9), "the blob has the bytes");
    ok(holds(in_folder("partial/upl_published"), "published", 9), "the partial file has the bytes");
    is_int(mdl_partial_list(storage, &ids, p), APR_SUCCESS, "the partial files are listed");
    is_str(apr_array_pstrcat(p, ids, ' '), "upl_published", "they are listed by their ids");

    partial = append_partial("upl_published");
    is_int(mdl_partial_write(partial, "x", 1), APR_EINVAL,
           "nothing can be appended to a published file");
    mdl_partial_keep(partial);
    partial = open_partial("upl_published");
    mdl_partial_digest(partial, &blob, p);
    is_int(mdl_partial_publish(partial, &blob), APR_SUCCESS, "it can be published once more");
    partial = append_partial("upl_published");
    is_int(mdl_partial_truncate(partial, 0), APR_SUCCESS,
           "the published file is truncated to nothing");
    mdl_partial_write(partial, "other", 5);
    mdl_partial_keep(partial);
    ok(holds(in_folder("partial/upl_published"), "other", 5), "the partial file has the new bytes");
    ok(holds(path, "published", 9), "the blob keeps its bytes");
    mdl_partial_remove(storage, "upl_published", p);
    ok(truncate(path, 4) == 0, "a blob is damaged");
    partial = append_partial("upl_published");
    mdl_partial_write(partial, "published", 9);
    mdl_partial_digest(partial, &blob, p);
    is_int(mdl_partial_publish(partial, &blob), APR_SUCCESS, "the same bytes are published again");
    ok(holds(path, "published", 9), "the damaged blob is whole again");
    ok(link(in_folder("partial/upl_published"), in_folder("partial/upl_published.blob")) == 0,
       "a process was killed before it had renamed the second link");
    mdl_partial_remove(storage, "upl_published", p);
    ok(!exists(in_folder("partial/upl_published.blob")),
       "the second link is removed with the partial file");
}

static void files_are_listed(void)
{
    static const char name[] = "00000000000000000000000000000000000000000000000000000000000000ab";
    struct timespec old[] = {{1000000000, 0}, {1000000000, 0}};
    apr_array_header_t *ids = NULL;
    apr_time_t written_at = 0;
    const char *path = mdl_storage_path(storage, name, p);

    close(open(path, O_CREAT | O_WRONLY, 0600));
    utimensat(AT_FDCWD, path, old, 0);
    close(open(in_folder("blobs/0/README"), O_CREAT | O_WRONLY, 0600));
    is_int(mdl_storage_list(storage, 0, &ids, p), APR_SUCCESS, "a folder of blobs is listed");
    is_str(apr_array_pstrcat(p, ids, ' '), name,
           "blobs are listed by their names, nothing else is");
    is_int(mdl_storage_written_at(storage, name, &written_at, p), APR_SUCCESS, "a blob has a date");
    is_int(written_at, apr_time_from_sec(1000000000), "that of when it was written");
    unlink(path);
    unlink(in_folder("blobs/0/README"));
    is_int(mdl_storage_written_at(storage, name, &written_at, p), APR_ENOENT,
           "one that is gone has none");

    close(open(in_folder("partial/upl_gone.blob"), O_CREAT | O_WRONLY, 0600));
    mdl_partial_list(storage, &ids, p);
    is_str(apr_array_pstrcat(p, ids, ' '), "upl_gone", "what is left of a partial file is listed");
    mdl_partial_remove(storage, "upl_gone", p);
}

static void a_killed_check_is_cleaned_up(void)
{
    struct timespec old[] = {{1000000000, 0}, {1000000000, 0}};
    apr_time_t before = apr_time_from_sec(1000000001);

    close(open(in_folder("partial/.check-abcdef"), O_CREAT | O_WRONLY, 0600));
    utimensat(AT_FDCWD, in_folder("partial/.check-abcdef"), old, 0);
    ok(link(in_folder("partial/.check-abcdef"), in_folder("blobs/0/.check-abcdef")) == 0,
       "a check is killed");
    close(open(in_folder("partial/.check-ghijkl"), O_CREAT | O_WRONLY, 0600));
    mdl_storage_clean(storage, before, p);
    ok(!exists(in_folder("partial/.check-abcdef")) && !exists(in_folder("blobs/0/.check-abcdef")),
       "what it has left is removed");
    ok(exists(in_folder("partial/.check-ghijkl")), "what may be of one that goes on stays");
    unlink(in_folder("partial/.check-ghijkl"));
}

static void one_writer_at_a_time(void)
{
    mdl_partial_t *first = open_partial("job_lock");
    mdl_partial_t *second;
    mdl_blob_t blob = {0};
    int status = -1;
    pid_t child;

    is_int(mdl_partial_open(&second, storage, "job_lock", NULL, NULL, p), APR_EAGAIN,
           "a second writer is refused");
    child = fork();
    if (child == 0) {
        _exit(mdl_partial_open(&second, storage, "job_lock", NULL, NULL, p) == APR_EAGAIN ? 0 : 1);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a second writer in another process is refused");
    mdl_partial_keep(first);
    is_int(mdl_partial_open(&second, storage, "job_lock", NULL, NULL, p), APR_SUCCESS,
           "another writer can open the file when the first has closed it");

    mdl_partial_write(second, "old", 3);
    is_int(mdl_partial_remove(storage, "job_lock", p), APR_SUCCESS, "a file is removed by its id");
    is_int(mdl_partial_remove(storage, "job_lock", p), APR_SUCCESS,
           "removing it once more succeeds");
    first = open_partial("job_lock");
    mdl_partial_write(first, "new", 3);
    mdl_partial_digest(second, &blob, p);
    is_int(mdl_partial_commit(second, &blob), APR_ENOENT,
           "a writer whose file was removed can't commit the file of its successor");
    ok(!exists(mdl_storage_path(storage, blob.sha256, p)), "no blob is made");
    mdl_partial_digest(first, &blob, p);
    is_int(mdl_partial_commit(first, &blob), APR_SUCCESS, "the successor commits");
    is_str(sha256sum(mdl_storage_path(storage, blob.sha256, p)), blob.sha256,
           "the successor's blob has its own bytes");
}

static void blobs_are_stored_once(void)
{
    mdl_blob_t one = {0};
    mdl_blob_t two = {0};
    struct stat before;
    struct stat after;
    const char *path;

    is_int(store("job_one", "same bytes", 10, &one), APR_SUCCESS, "a blob is stored");
    path = mdl_storage_path(storage, one.sha256, p);
    stat(path, &before);
    is_int(store("job_two", "same bytes", 10, &two), APR_SUCCESS,
           "the same bytes are stored again");
    is_str(two.sha256, one.sha256, "they have the same name");
    stat(path, &after);
    ok(before.st_ino == after.st_ino, "the first file remains");
    ok(!exists(in_folder("partial/job_two")), "the second one is removed");
    ok(truncate(path, 4) == 0, "a blob is damaged");
    is_int(store("job_three", "same bytes", 10, &two), APR_SUCCESS,
           "the damaged blob is stored again");
    is_str(sha256sum(path), one.sha256, "the damaged blob is whole again");
}

static void only_its_own_digest_is_committed(void)
{
    mdl_partial_t *partial = open_partial("job_wrong");
    mdl_blob_t blob = {0};

    mdl_partial_write(partial, "bytes", 5);
    mdl_partial_digest(partial, &blob, p);
    blob.sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    is_int(mdl_partial_commit(partial, &blob), APR_EINVAL,
           "a file is not committed under another digest");
    ok(exists(in_folder("partial/job_wrong")), "the partial file is kept");
    ok(!exists(mdl_storage_path(storage, blob.sha256, p)), "no blob has that digest");
    partial = open_partial("job_wrong");
    is_int(mdl_partial_commit(partial, &blob), APR_EINVAL,
           "a file that was not digested is not committed");
    mdl_partial_remove(storage, "job_wrong", p);
}

/* A limit on the size of files simulates a full disk. */
static void limit_files(rlim_t size)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = size;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void a_full_disk_is_reported(void)
{
    const char *data = noise(2 * MIB);
    mdl_partial_t *partial = open_partial("job_full");
    const char *path = in_folder("partial/job_full");
    mdl_blob_t blob = {0};

    signal(SIGXFSZ, SIG_IGN);
    limit_files(MIB + 1000);
    is_int(mdl_partial_write(partial, data, 2 * MIB), APR_ENOSPC, "a full disk is reported");
    is_int(size_of(path), MIB + 1000, "the bytes before the limit are written");
    is_int(mdl_partial_digest(partial, &blob, p), APR_ENOSPC, "it can't be digested");
    is_int(mdl_partial_keep(partial), APR_ENOSPC, "keeping it reports the full disk");
    is_int(size_of(path), MIB + 1000, "the file is kept nevertheless");
    partial = open_partial("job_full");
    is_int(mdl_partial_size(partial), MIB + 1000, "it can be opened again");
    limit_files(RLIM_INFINITY);
    is_int(mdl_partial_write(partial, data + MIB + 1000, MIB - 1000), APR_SUCCESS,
           "it can be continued when there is space again");
    mdl_partial_digest(partial, &blob, p);
    is_str(sha256sum(path), blob.sha256, "its digest is right");
    ok(holds(path, data, 2 * MIB), "its bytes are right");
    mdl_partial_discard(partial);

    partial = open_partial("job_full");
    limit_files(MIB + 1000);
    mdl_partial_write(partial, data, MIB + MIB / 2);
    limit_files(RLIM_INFINITY);
    is_int(mdl_partial_size(partial), MIB + MIB / 4,
           "a writer that waits for space keeps the bytes it accepted");
    is_int(mdl_partial_write(partial, data + MIB + MIB / 4, 3 * (MIB / 4)), APR_SUCCESS,
           "it continues when there is space again");
    mdl_partial_digest(partial, &blob, p);
    is_str(sha256sum(path), blob.sha256, "its digest is right");
    ok(holds(path, data, 2 * MIB), "its bytes are right");
    is_int(mdl_partial_commit(partial, &blob), APR_SUCCESS, "it is committed");
    limit_files(0);
    is_int(mdl_storage_check(storage, p), APR_ENOSPC, "the check reports a full disk");
    limit_files(RLIM_INFINITY);
    is_int(entries(in_folder("partial")), 0, "the check leaves nothing behind on a full disk");
}

static void a_reserve_stays_free(void)
{
    char *data = memset(apr_palloc(p, MIB), 'r', MIB);
    mdl_storage_t *reserving;
    mdl_partial_t *partial;

    mdl_storage_open(&reserving, folder, 100 * 1024, p);
    kilobytes_free = 100;
    is_int(mdl_storage_room(reserving, 0), APR_SUCCESS, "nothing can be written into the reserve");
    is_int(mdl_storage_room(reserving, 1), APR_ENOSPC, "one byte can't");
    is_int(mdl_storage_room(storage, MIB), APR_SUCCESS, "without a reserve the disk is the limit");
    is_int(mdl_storage_check(reserving, p), APR_SUCCESS, "a check passes with the reserve free");
    kilobytes_free = 99;
    is_int(mdl_storage_check(reserving, p), APR_ENOSPC, "it fails with less");
    kilobytes_free = 100 + 256;
    mdl_partial_open(&partial, reserving, "reserve", NULL, NULL, p);
    is_int(mdl_partial_write(partial, data, 256 * 1024), APR_SUCCESS, "what fits is written");
    kilobytes_free = 100 + 255;
    is_int(mdl_partial_write(partial, data, 256 * 1024), APR_ENOSPC, "what does not fit is not");
    is_int(size_of(in_folder("partial/reserve")), 256 * 1024, "and the file stays as it was");
    kilobytes_free = 1 << 30;
    mdl_partial_discard(partial);
}

static void a_cleared_pool_closes(void)
{
    apr_pool_t *sub;
    mdl_partial_t *partial;

    apr_pool_create(&sub, p);
    mdl_partial_open(&partial, storage, "job_pool", NULL, NULL, sub);
    mdl_partial_write(partial, noise(300000), 300000);
    apr_pool_destroy(sub);
    partial = open_partial("job_pool");
    ok(partial, "a file is unlocked when its pool is destroyed");
    is_int(mdl_partial_size(partial), 262144, "it has the bytes that were written to disk");
    mdl_partial_discard(partial);
}

static void a_link_is_not_followed(void)
{
    mdl_partial_t *partial;

    close(open(in_folder("target"), O_CREAT | O_WRONLY, 0600));
    ok(symlink(in_folder("target"), in_folder("partial/job_link")) == 0, "a symbolic link is made");
    is_int(mdl_partial_open(&partial, storage, "job_link", NULL, NULL, p), ELOOP,
           "a symbolic link in the place of a partial file is refused");
    mdl_partial_remove(storage, "job_link", p);
    ok(exists(in_folder("target")), "removing the link keeps its target");
}

/* Opens and discards; returns how often the file that it had locked was already removed. */
static int open_often(int times)
{
    apr_pool_t *sub;
    mdl_partial_t *partial;
    int lost = 0;

    apr_pool_create(&sub, p);
    for (int i = 0; i < times; i++) {
        if (mdl_partial_open(&partial, storage, "job_race", NULL, NULL, sub) == APR_SUCCESS) {
            lost += !exists(in_folder("partial/job_race"));
            mdl_partial_discard(partial);
        }
    }
    apr_pool_destroy(sub);
    return lost;
}

static void a_lock_is_on_the_file_of_that_name(void)
{
    pid_t child = fork();
    int status = -1;
    int lost;

    if (child == 0) {
        _exit(open_often(20000) ? 1 : 0);
    }
    lost = open_often(20000);
    waitpid(child, &status, 0);
    is_int(lost, 0, "a file opened while another process removes it is the file of that name");
    is_int(status, 0, "the other process opens the file of that name, too");
}

static void crc32_is_continued(void)
{
    apr_uint32_t crc = mdl_crc32(mdl_crc32(0, "1234", 4), "56789", 5);

    is_int(crc, 0xCBF43926, "the CRC-32 of two pieces is that of the whole");
    is_int(mdl_crc32(crc, NULL, 0), crc, "no bytes leave the CRC-32 unchanged");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    int before;

    p = tap_begin();
    umask(0);
    apr_snprintf(folder, sizeof folder, "%s/mdl-storage-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        printf("Bail out! no temporary folder\n");
        return 2;
    }
    before = descriptors();
    folders_are_made();
    names_are_checked();
    digests_are_right(0, "an empty file");
    digests_are_right(1, "a file of one byte");
    digests_are_right(262144, "a file of exactly one buffer");
    digests_are_right(20 * MIB + 5, "a large file in pieces of many sizes");
    a_transfer_is_resumed();
    pieces_are_appended();
    what_is_in_doubt_does_not_count();
    a_published_file_stays();
    files_are_listed();
    a_killed_check_is_cleaned_up();
    one_writer_at_a_time();
    blobs_are_stored_once();
    only_its_own_digest_is_committed();
    a_full_disk_is_reported();
    a_reserve_stays_free();
    a_cleared_pool_closes();
    a_link_is_not_followed();
    a_lock_is_on_the_file_of_that_name();
    crc32_is_continued();
    is_int(descriptors(), before, "no descriptor is left open");
    is_int(entries(in_folder("partial")), 0, "no partial file is left");
    if (system(apr_pstrcat(p, "rm -r '", folder, "'", NULL)) != 0) {
        printf("# %s remains\n", folder);
    }
    return tap_end(p);
}
