/*
 * For LD_PRELOAD: the disk of SQLite's files is full.  Built by t/operate/check.t.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_full(int fd)
{
    char link[64], path[4096];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    return strstr(path, ".db-wal") != NULL || strstr(path, ".db-journal") != NULL;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, length, offset);
}
