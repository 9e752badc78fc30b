#include "request_notes.h"

#include <stdint.h>

#include <apr_strings.h>
#include <http_config.h>

#include "core/metrics.h"

extern module AP_MODULE_DECLARE_DATA downloads_module;

void mdl_note(request_rec *r, const char *name, const char *text)
{
    if (MDL_METRICS && text != NULL) {
        apr_table_setn(r->notes, name, text);
    }
}

void mdl_note_id(request_rec *r, const char *name, apr_int64_t id)
{
    if (MDL_METRICS && id != 0) {
        apr_table_setn(r->notes, name, apr_ltoa(r->pool, (long)id));
    }
}

void mdl_note_operation(request_rec *r, int number)
{
    ap_set_module_config(r->request_config, &downloads_module, (void *)(intptr_t)number);
}

int mdl_noted_operation(request_rec *r)
{
    return (int)(intptr_t)ap_get_module_config(r->request_config, &downloads_module);
}
