#include "ctl/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>

/* Becomes a user without an entry in the password database, as is common in containers. */
static int become_number(uid_t uid, gid_t gid)
{
    unsetenv("HOME");
    return setgroups(0, NULL) == 0 && setgid(gid) == 0 && setuid(uid) == 0;
}

static int become_user(const struct passwd *user)
{
    /* Otherwise libpq would look for its files in root's home, which it could not read. */
    setenv("HOME", user->pw_dir, 1);
    return initgroups(user->pw_name, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
           setuid(user->pw_uid) == 0;
}

const char *mdl_owner_become(const char *folder, apr_pool_t *p)
{
    const struct passwd *user;
    struct stat info;

    if (geteuid() != 0) {
        return NULL;
    }
    if (folder == NULL) {
        return "DownloadsStorage is missing: root has to become that folder's owner first.";
    }
    if (stat(folder, &info) != 0) {
        return apr_psprintf(p,
                            "DownloadsStorage: the folder %s can't be found or read (%s); create "
                            "it, and give it to the user that httpd runs as.",
                            folder, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return apr_psprintf(p, "DownloadsStorage: %s is not a folder.", folder);
    }
    if (info.st_uid == 0) {
        return apr_psprintf(p,
                            "DownloadsStorage: the folder %s belongs to root; give it to the user "
                            "that httpd runs as.",
                            folder);
    }
    user = getpwuid(info.st_uid);
    if (!(user != NULL ? become_user(user) : become_number(info.st_uid, info.st_gid))) {
        return apr_psprintf(p, "The system does not let root become the owner of %s: %s.", folder,
                            strerror(errno));
    }
    return NULL;
}

const char *mdl_owner_become_user(const char *name, apr_pool_t *p)
{
    const struct passwd *user = name != NULL ? getpwnam(name) : NULL;

    if (geteuid() != 0) {
        return NULL;
    }
    if (user == NULL || user->pw_uid == 0) {
        return "Without DownloadsStorage, root has to become httpd's user first, and \"httpd -t -D "
               "DUMP_RUN_CFG\" names none: run this as that user.";
    }
    return become_user(user) ? NULL
                             : apr_psprintf(p, "The system does not let root become %s: %s.", name,
                                            strerror(errno));
}
