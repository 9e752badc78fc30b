#include "base/names.h"

#include <string.h>

int mdl_names_find(const char *const *names, const char *name)
{
    for (int i = 0; name != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}
