#include "parent/metrics_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>

#include "base/version.h"
#include "core/metrics.h"

#define RETAINED_KEY "mod_downloads_metrics"

/* Survives a restart, which unloads this shared object. */
typedef struct {
    mdl_metrics_t *memory; /* NULL: none yet */
    apr_size_t size;
    int operations;
    char build[80];
} retained_t;

static int is_of_this_build(const retained_t *data, int operations)
{
    return data->memory != NULL && data->size == sizeof *data->memory &&
           data->operations == operations && strcmp(data->build, mdl_build_name()) == 0;
}

apr_status_t mdl_metrics_memory_open(int operations)
{
    retained_t *data = ap_retained_data_get(RETAINED_KEY);
    void *memory;

    if (data == NULL) {
        data = ap_retained_data_create(RETAINED_KEY, sizeof *data);
    }
    if (!is_of_this_build(data, operations)) {
        /* Not apr_shm, whose memory ends with a pool. */
        memory = mmap(NULL, sizeof *data->memory, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return errno;
        }
        if (data->memory != NULL) {
            munmap(data->memory, data->size); /* the children have it still */
        }
        data->memory = memory;
        data->size = sizeof *data->memory;
        data->operations = operations;
        apr_cpystrn(data->build, mdl_build_name(), sizeof data->build);
        mdl_metrics_clear(data->memory);
    }
    mdl_metrics = data->memory;
    return APR_SUCCESS;
}
