#include "base/http/path.h"

#include <string.h>

#include <apr_strings.h>

int mdl_path_match(const char *form, const char *path, const char **parameters, apr_pool_t *p)
{
    int n = 0;

    memset(parameters, 0, MDL_PATH_PARAMETERS * sizeof *parameters);
    while (*form != '\0') {
        if (form[0] == '{') {
            apr_size_t length = strcspn(path, "/");

            if (length == 0) {
                return -1;
            }
            parameters[n++] = apr_pstrmemdup(p, path, length);
            path += length;
            form += 2;
        } else if (*form++ != *path++) {
            return -1;
        }
    }
    return *path == '\0' ? n : -1;
}
