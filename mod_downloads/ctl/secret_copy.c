#include "ctl/secret_copy.h"

#include <stdlib.h>
#include <string.h>

#include <apr_file_info.h>
#include <apr_strings.h>

/* Links are followed. */
static const char *true_path(const char *path, apr_pool_t *p)
{
    char *resolved = realpath(path, NULL);
    const char *found = apr_pstrdup(p, resolved);

    free(resolved);
    return found;
}

/* A folder that is missing has nothing inside. */
static int path_is_inside(const char *path, const char *folder, apr_pool_t *p)
{
    const char *slash = strrchr(path, '/');
    const char *parent = true_path(
        slash != NULL ? apr_pstrmemdup(p, path, (apr_size_t)(slash + 1 - path)) : ".", p);
    const char *outer = true_path(folder, p);
    apr_size_t length = outer != NULL ? strlen(outer) : 0;

    return parent != NULL && outer != NULL && strncmp(parent, outer, length) == 0 &&
           (parent[length] == '/' || parent[length] == '\0');
}

const char *mdl_ctl_secret_copy(const mdl_secret_t *secret, const char *file, const char *folder,
                                apr_pool_t *p)
{
    const char *why = NULL;

    if (path_is_inside(file, folder, p)) {
        return apr_psprintf(p,
                            "%s is among the backups: whoever has both can open what the database "
                            "has sealed, so keep the secret apart.",
                            file);
    }
    for (int i = 0; i < mdl_secret_count(secret) && why == NULL; i++) {
        const char *path = i == 0 ? file : apr_psprintf(p, "%s.%d", file, i + 1);

        mdl_secret_save(mdl_secret_at(secret, i), path, &why, p);
    }
    return why;
}
