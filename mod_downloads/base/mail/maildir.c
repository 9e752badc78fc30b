#include "base/mail/maildir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_atomic.h>
#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_network_io.h>
#include <apr_strings.h>
#include <apr_time.h>

#define NAME_ATTEMPTS 100
#define LEFT_AFTER_S  (36 * 3600) /* the Maildir convention for tmp/ */

static const char *maildir_failure(const char *what, const char *path, int error, apr_pool_t *p)
{
    char text[120];

    return apr_psprintf(p, "%s %s: %s.", what, path, apr_strerror(error, text, sizeof text));
}

/* The name of this host, escaped for the name of a file in a Maildir. */
static const char *escaped_host(apr_pool_t *p)
{
    char host[APRMAXHOSTLEN + 1];
    char *name = apr_palloc(p, sizeof host * 4);
    char *end = name;

    if (apr_gethostname(host, sizeof host, p) != APR_SUCCESS || host[0] == '\0') {
        return "localhost";
    }
    for (const char *c = host; *c != '\0'; c++) {
        if (*c == '/' || *c == ':') {
            end += sprintf(end, "\\%03o", (unsigned int)*c);
        } else {
            *end++ = *c;
        }
    }
    *end = '\0';
    return name;
}

/* time.MmicrosecondsPpidQcounter.host: unique among the hosts and processes that deliver here. */
static const char *unique_name(apr_pool_t *p)
{
    static apr_uint32_t counter;
    apr_time_t now = apr_time_now();

    return apr_psprintf(p, "%" APR_TIME_T_FMT ".M%" APR_TIME_T_FMT "P%" APR_PID_T_FMT "Q%u.%s",
                        apr_time_sec(now), apr_time_usec(now), getpid(), apr_atomic_inc32(&counter),
                        escaped_host(p));
}

static apr_status_t folders_make(const char *folder, const char **detail, apr_pool_t *p)
{
    static const char *const names[] = {"tmp", "new", "cur"};

    for (int i = 0; i < 3; i++) {
        const char *path = apr_pstrcat(p, folder, "/", names[i], NULL);
        apr_status_t rv = apr_dir_make_recursive(
            path, APR_FPROT_UREAD | APR_FPROT_UWRITE | APR_FPROT_UEXECUTE, p);

        if (rv != APR_SUCCESS) {
            *detail = maildir_failure("The Maildir has no folder", path, rv, p);
            return rv;
        }
    }
    return APR_SUCCESS;
}

static int write_all(int file, const char *data, apr_size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, data, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return errno;
        }
        data += written;
        length -= (apr_size_t)written;
    }
    return 0;
}

/* Writes the message with LF line ends. */
static int message_write(int file, const char *message, apr_size_t length)
{
    char piece[8192];
    apr_size_t filled = 0;
    int error = 0;

    for (apr_size_t i = 0; i < length && error == 0; i++) {
        if (message[i] != '\r') {
            piece[filled++] = message[i];
        }
        if (filled == sizeof piece || i + 1 == length) {
            error = write_all(file, piece, filled);
            filled = 0;
        }
    }
    return error;
}

static int folder_sync(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = folder < 0 || fsync(folder) != 0 ? errno : 0;

    if (folder >= 0) {
        close(folder);
    }
    return error;
}

/* Writes and syncs a new file in tmp/; *name gets its name.  Returns an errno, or 0. */
static int temporary_write(const char *folder, const char *head, const char *message,
                           apr_size_t length, const char **name, apr_pool_t *p)
{
    const char *path;
    int attempts = 0;
    int error;
    int file;

    do {
        *name = unique_name(p);
        path = apr_pstrcat(p, folder, "/tmp/", *name, NULL);
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    } while (file < 0 && errno == EEXIST && ++attempts < NAME_ATTEMPTS);
    if (file < 0) {
        return errno;
    }
    error = write_all(file, head, strlen(head));
    if (error == 0) {
        error = message_write(file, message, length);
    }
    if (error == 0 && fsync(file) != 0) {
        error = errno;
    }
    if (close(file) != 0 && error == 0) {
        error = errno;
    }
    if (error != 0) {
        unlink(path);
    }
    return error;
}

static void leftover_remove(const char *path)
{
    time_t before = apr_time_sec(apr_time_now()) - LEFT_AFTER_S;
    struct stat file;

    if (lstat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_mtime < before) {
        unlink(path);
    }
}

/* Removes files left in tmp/ by a process that was killed while writing. */
static void leftovers_sweep(const char *folder, apr_pool_t *p)
{
    const char *path = apr_pstrcat(p, folder, "/tmp", NULL);
    apr_finfo_t entry;
    apr_dir_t *tmp;

    if (apr_dir_open(&tmp, path, p) != APR_SUCCESS) {
        return;
    }
    while (apr_dir_read(&entry, APR_FINFO_NAME, tmp) == APR_SUCCESS) {
        leftover_remove(apr_pstrcat(p, path, "/", entry.name, NULL));
    }
    apr_dir_close(tmp);
}

mdl_mail_outcome_t mdl_maildir_send(const char *folder, const char *from, const char *to,
                                    const char *message, apr_size_t length, const char **detail,
                                    apr_pool_t *p)
{
    const char *new_folder = apr_pstrcat(p, folder, "/new", NULL);
    const char *head = apr_psprintf(p, "Return-Path: <%s>\nDelivered-To: %s\n", from, to);
    const char *temporary;
    const char *name;
    int error;

    if (folders_make(folder, detail, p) != APR_SUCCESS) {
        return MDL_MAIL_LATER;
    }
    leftovers_sweep(folder, p);
    error = temporary_write(folder, head, message, length, &name, p);
    if (error != 0) {
        *detail = maildir_failure("No message can be written to the Maildir", folder, error, p);
        return MDL_MAIL_LATER;
    }
    /* link, not rename, which could replace an existing message. */
    temporary = apr_pstrcat(p, folder, "/tmp/", name, NULL);
    error = link(temporary, apr_pstrcat(p, new_folder, "/", name, NULL)) != 0 ? errno : 0;
    unlink(temporary);
    if (error != 0) {
        *detail = maildir_failure("No message can be delivered to the Maildir", folder, error, p);
        return MDL_MAIL_LATER;
    }
    error = folder_sync(new_folder);
    if (error != 0) {
        *detail = maildir_failure("The message may not last in the Maildir", folder, error, p);
        return MDL_MAIL_UNKNOWN;
    }
    return MDL_MAIL_SENT;
}

apr_status_t mdl_maildir_check(const char *folder, const char **detail, apr_pool_t *p)
{
    const char *name;
    int error;

    if (folders_make(folder, detail, p) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    error = temporary_write(folder, "", "", 0, &name, p);
    if (error != 0) {
        *detail = maildir_failure("No message can be written to the Maildir", folder, error, p);
        return APR_EGENERAL;
    }
    unlink(apr_pstrcat(p, folder, "/tmp/", name, NULL));
    return APR_SUCCESS;
}
