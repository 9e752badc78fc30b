/*
 * Partial files: digests, pieces, locks, full disks, and how they become blobs.
 */
#include "t/unit/stored.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/zip/crc32.h"

/* A log of the disk operations: a letter for each fsync of a file or folder and each rename. */
static char steps[64];
static int folders_fail; /* syncing a folder fails */
static int files_fail;   /* syncing a file fails */

static void note_step(char step)
{
    apr_size_t n = strlen(steps);

    if (n + 1 < sizeof steps) {
        steps[n] = step;
    }
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    struct stat st;
    int is_folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

    note_step(is_folder ? 'd' : 'f');
    if (is_folder ? folders_fail : files_fail) {
        errno = EIO;
        return -1;
    }
    return 0;
}

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    note_step('r');
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static const char *zlib_crc32(const char *path)
{
    const char *program = "import sys, zlib; print(zlib.crc32(sys.stdin.buffer.read()))";

    return output_of(apr_psprintf(p, "/usr/bin/python3 -c '%s' < '%s'", program, path), p);
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
    is_int(commit(partial, &blob), APR_SUCCESS, "it becomes a blob");
    path = mdl_storage_place(storage, &blob, p);
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
    mdl_storage_t *none;
    mdl_blob_t blob = {0};
    apr_int64_t size = -1;

    mdl_storage_open(&none, &(mdl_storage_config_t){0}, p);
    is_int(mdl_partial_length(none, "upl_none", &size, p), APR_ENOENT,
           "without a folder every partial file is missing");
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
    mdl_partial_keep(partial); /* like a killed process */
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
    path = mdl_storage_place(storage, &blob, p);
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
    is_int(commit(second, &blob), APR_ENOENT,
           "a writer whose file was removed can't commit the file of its successor");
    ok(!exists(mdl_storage_place(storage, &blob, p)), "no blob is made");
    mdl_partial_digest(first, &blob, p);
    is_int(commit(first, &blob), APR_SUCCESS, "the successor commits");
    is_str(sha256sum(mdl_storage_place(storage, &blob, p)), blob.sha256,
           "the successor's blob has its own bytes");
}

static void only_its_own_digest_is_committed(void)
{
    mdl_partial_t *partial = open_partial("job_wrong");
    mdl_blob_t blob = {0};

    mdl_partial_write(partial, "bytes", 5);
    mdl_partial_digest(partial, &blob, p);
    blob.sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    is_int(commit(partial, &blob), APR_EINVAL, "a file is not committed under another digest");
    ok(exists(in_folder("partial/job_wrong")), "the partial file is kept");
    ok(!exists(mdl_storage_place(storage, &blob, p)), "no blob has that digest");
    partial = open_partial("job_wrong");
    is_int(commit(partial, &blob), APR_EINVAL, "a file that was not digested is not committed");
    mdl_partial_remove(storage, "job_wrong", p);
}

static void many_are_committed_step_by_step(void)
{
    static const char *const names[] = {"job_one", "job_two", "job_same", "job_wrong", "job_gone"};
    static const char *const bytes[] = {"one", "two", "two", "wrong", "gone"};
    static const apr_status_t results[] = {0, 0, 0, APR_EINVAL, APR_ENOENT};
    const mdl_blob_t another = {
        .sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    mdl_partial_commit_t commits[5];
    mdl_blob_t blobs[5] = {{0}};

    for (int i = 0; i < 5; i++) {
        mdl_partial_t *partial = open_partial(names[i]);

        mdl_partial_write(partial, bytes[i], strlen(bytes[i]));
        mdl_partial_digest(partial, &blobs[i], p);
        commits[i] = (mdl_partial_commit_t){partial, i == 3 ? &another : &blobs[i], -1};
    }
    mdl_partial_remove(storage, "job_gone", p);
    memset(steps, 0, sizeof steps);
    mdl_partial_commit_all(commits, 5);
    is_str(steps, "ffffrrdd",
           "files are synced before any is renamed, each folder once after all; same bytes are "
           "renamed once");
    for (int i = 0; i < 5; i++) {
        const char *path = mdl_storage_place(storage, &blobs[i], p);

        is_int(commits[i].rv, results[i], names[i]);
        is_int(exists(path), results[i] == APR_SUCCESS, "whose blob is there if it succeeded");
        ok(results[i] != APR_SUCCESS || holds(path, bytes[i], strlen(bytes[i])), "with its bytes");
    }
    is_int(entries(in_folder("partial")), 1, "only the file that failed stays partial");
    mdl_partial_remove(storage, "job_wrong", p);
}

/* Two files with the same bytes, and so in the same folder. */
static void a_folder_that_is_not_synced_fails_all(void)
{
    mdl_partial_commit_t commits[2];
    mdl_blob_t blobs[2] = {{0}};

    for (int i = 0; i < 2; i++) {
        mdl_partial_t *partial = open_partial(i == 0 ? "job_first" : "job_second");

        mdl_partial_write(partial, "unsynced", 8);
        mdl_partial_digest(partial, &blobs[i], p);
        commits[i] = (mdl_partial_commit_t){partial, &blobs[i], -1};
    }
    memset(steps, 0, sizeof steps);
    folders_fail = 1;
    mdl_partial_commit_all(commits, 2);
    folders_fail = 0;
    is_str(steps, "ffrd", "a folder is synced once, also if that fails");
    is_int(commits[0].rv, EIO, "which the first of its files reports");
    is_int(commits[1].rv, EIO, "and the second");
}

/* The kernel reports bytes that it could not write only once. */
static void refused_bytes_do_not_count(void)
{
    mdl_partial_commit_t commit;
    mdl_blob_t blob = {0};
    mdl_partial_t *partial = open_partial("refused");
    apr_int64_t length = -1;

    mdl_partial_write(partial, "some bytes", 10);
    mdl_partial_keep(partial);
    files_fail = 1;
    is_int(mdl_partial_sync(storage, "refused", &length, p), EIO, "the disk refuses bytes");
    files_fail = 0;
    is_int(mdl_partial_sync(storage, "refused", &length, p), APR_SUCCESS, "the next sync succeeds");
    is_int(length, 0, "and none of the file's bytes count");
    partial = open_partial("refused");
    is_int(mdl_partial_size(partial), 0, "whoever opens it next begins anew");

    mdl_partial_write(partial, "some bytes", 10);
    mdl_partial_digest(partial, &blob, p);
    commit = (mdl_partial_commit_t){partial, &blob, -1};
    files_fail = 1;
    mdl_partial_commit_all(&commit, 1);
    files_fail = 0;
    is_int(commit.rv, EIO, "the disk refuses bytes of what was to become a blob");
    partial = open_partial("refused");
    is_int(mdl_partial_size(partial), 0, "whoever opens that next begins anew, too");
    mdl_partial_discard(partial);
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
    is_int(commit(partial, &blob), APR_SUCCESS, "it is committed");
    limit_files(0);
    is_int(mdl_storage_check(storage, p), APR_ENOSPC, "the check reports a full disk");
    limit_files(RLIM_INFINITY);
    is_int(entries(in_folder("partial")), 0, "the check leaves nothing behind on a full disk");
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

/* Opens and discards a file; returns how often the locked file was already removed. */
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

static void tests(void)
{
    is_int(mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder, .reserve = 0}, p),
           APR_SUCCESS, "a folder is opened");
    digests_are_right(0, "an empty file");
    digests_are_right(1, "a file of one byte");
    digests_are_right(262144, "a file of exactly one buffer");
    digests_are_right(20 * MIB + 5, "a large file in pieces of many sizes");
    a_transfer_is_resumed();
    pieces_are_appended();
    what_is_in_doubt_does_not_count();
    a_published_file_stays();
    one_writer_at_a_time();
    only_its_own_digest_is_committed();
    many_are_committed_step_by_step();
    a_folder_that_is_not_synced_fails_all();
    refused_bytes_do_not_count();
    a_full_disk_is_reported();
    a_cleared_pool_closes();
    a_link_is_not_followed();
    a_lock_is_on_the_file_of_that_name();
    crc32_is_continued();
}

int main(void)
{
    return test_storage(tests);
}
