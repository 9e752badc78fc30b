/*
 * The storage folder: creation, names, blobs, the check, the reserve.
 */
#include "t/unit/stored.h"

#include <sys/statvfs.h>

/* The free space that statvfs reports, in kilobytes. */
static fsblkcnt_t kilobytes_free = 1 << 30;

__attribute__((visibility("default"))) int statvfs(const char *path, struct statvfs *fs)
{
    (void)path;
    *fs = (struct statvfs){
        .f_bsize = 4096, .f_frsize = 1024, .f_bfree = 1 << 30, .f_bavail = kilobytes_free};
    return 0;
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
    return commit(partial, blob);
}

static void folders_are_made(void)
{
    mdl_storage_t *none;

    is_int(mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder, .reserve = 0}, p),
           APR_SUCCESS, "an empty folder is opened");
    is_int(entries(in_folder("blobs")), 16, "it has 16 folders of blobs");
    is_int(mode_of(in_folder("blobs/f")), 0750, "they are closed to others");
    is_int(mode_of(in_folder("partial")), 0750, "the folder of partial files is closed to others");
    is_int(mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder, .reserve = 0}, p),
           APR_SUCCESS, "the folder is opened again");
    is_int(mdl_storage_check(storage, p), APR_SUCCESS, "the check succeeds");
    is_int(entries(in_folder("partial")), 0, "the check leaves nothing behind");
    is_int(mdl_storage_open(
               &none, &(mdl_storage_config_t){.folder = in_folder("missing"), .reserve = 0}, p),
           APR_ENOENT, "a missing folder is absent");
    ok(!none, "no storage is returned for a missing folder");
    mkdir(in_folder("odd"), 0700);
    close(open(in_folder("odd/blobs"), O_CREAT | O_WRONLY, 0600));
    is_int(mdl_storage_open(&none,
                            &(mdl_storage_config_t){.folder = in_folder("odd"), .reserve = 0}, p),
           APR_ENOTDIR, "a file in the place of a folder is refused");
    rmdir(in_folder("blobs/7"));
    is_int(mdl_storage_check(storage, p), APR_ENOENT,
           "the check reports a missing folder of blobs");
    is_int(mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder, .reserve = 0}, p),
           APR_SUCCESS, "the storage is opened without that folder");
    ok(exists(in_folder("blobs/7")), "opening makes the missing folder");
}

static const char *place_of(const char *sha256)
{
    return mdl_storage_place(storage, &(mdl_blob_t){.sha256 = sha256}, p);
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
    ok(!place_of("../../../../etc/passwd"), "an invalid digest has no path");
    ok(!place_of("../3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"),
       "a digest with a path in it has no path");
    is_str(place_of("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
           in_folder("blobs/0/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
           "a digest's path begins with its first digit");
    ok(!place_of("0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"),
       "a digest in upper case has no path");
}

static void files_are_listed(void)
{
    static const char name[] = "00000000000000000000000000000000000000000000000000000000000000ab";
    struct timespec old[] = {{1000000000, 0}, {1000000000, 0}};
    apr_array_header_t *ids = NULL;
    const mdl_blob_t blob = {.sha256 = name};
    apr_time_t written_at = 0;
    const char *path = place_of(name);

    close(open(path, O_CREAT | O_WRONLY, 0600));
    utimensat(AT_FDCWD, path, old, 0);
    close(open(in_folder("blobs/0/README"), O_CREAT | O_WRONLY, 0600));
    is_int(mdl_storage_list(storage, 0, &ids, p), APR_SUCCESS, "a folder of blobs is listed");
    is_str(apr_array_pstrcat(p, ids, ' '), name,
           "blobs are listed by their names, nothing else is");
    is_int(mdl_storage_written_at(storage, &blob, &written_at, p), APR_SUCCESS,
           "a blob has a date");
    is_int(written_at, apr_time_from_sec(1000000000), "that of when it was written");
    unlink(path);
    unlink(in_folder("blobs/0/README"));
    is_int(mdl_storage_written_at(storage, &blob, &written_at, p), APR_ENOENT,
           "one that is gone has none");

    close(open(in_folder("partial/upl_gone.blob"), O_CREAT | O_WRONLY, 0600));
    mdl_partial_list(storage, &ids, p);
    is_str(apr_array_pstrcat(p, ids, ' '), "upl_gone", "what is left of a partial file is listed");
    mdl_partial_remove(storage, "upl_gone", p);
}

static void a_blob_is_looked_at(void)
{
    static const char name[] =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* abc */
    const mdl_blob_t blob = {.sha256 = name};
    const char *path = place_of(name), *digest = "";
    apr_int64_t size = 0;
    int file = open(path, O_CREAT | O_WRONLY, 0600);

    ok(write(file, "abc", 3) == 3, "a blob is there");
    is_int(mdl_storage_size(storage, &blob, &size, p), APR_SUCCESS, "it has a size");
    is_int(size, 3, "its own");
    is_int(mdl_storage_digest(storage, &blob, &digest, p), APR_SUCCESS, "it is read");
    is_str(digest, name, "its digest is its name");
    ok(write(file, "d", 1) == 1 && close(file) == 0, "it changes");
    mdl_storage_digest(storage, &blob, &digest, p);
    ok(strcmp(digest, name) != 0, "then it is not");
    chmod(path, 0);
    is_int(mdl_storage_permit(storage, &blob, p), APR_SUCCESS, "a mode is given back");
    is_int(mdl_storage_size(storage, &blob, &size, p), APR_SUCCESS, "so that it can be read");
    is_int(mdl_storage_set_aside(storage, &blob, p), APR_SUCCESS, "it is set aside");
    is_int(mdl_storage_size(storage, &blob, &size, p), APR_ENOENT, "and missing then");
    is_int(mdl_storage_digest(storage, &blob, &digest, p), APR_ENOENT, "for all");
    ok(unlink(apr_pstrcat(p, path, ".damaged", NULL)) == 0, "but kept by another name");
    is_int(mdl_storage_size(storage, &(mdl_blob_t){.sha256 = "../x"}, &size, p), APR_EINVAL,
           "what is no name is refused");
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

static void blobs_are_stored_once(void)
{
    mdl_blob_t one = {0};
    mdl_blob_t two = {0};
    struct stat before;
    struct stat after;
    const char *path;

    is_int(store("job_one", "same bytes", 10, &one), APR_SUCCESS, "a blob is stored");
    path = mdl_storage_place(storage, &one, p);
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

static void a_reserve_stays_free(void)
{
    char *data = memset(apr_palloc(p, MIB), 'r', MIB);
    mdl_storage_t *reserving;
    mdl_partial_t *partial;

    mdl_storage_open(&reserving, &(mdl_storage_config_t){.folder = folder, .reserve = 100 * 1024},
                     p);
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

static void tests(void)
{
    folders_are_made();
    names_are_checked();
    files_are_listed();
    a_blob_is_looked_at();
    a_killed_check_is_cleaned_up();
    blobs_are_stored_once();
    a_reserve_stays_free();
}

int main(void)
{
    return test_storage(tests);
}
