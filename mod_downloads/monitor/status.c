#include "monitor/status.h"

#include <apr_optional_hooks.h>
#include <http_protocol.h>
#include <mod_status.h>

#include "base/version.h"
#include "monitor/exposition.h"
#include "monitor/scrape.h"

static const mdl_service_t *service; /* NULL: the module is not configured */

static int status_show(request_rec *r, int flags)
{
    int is_text = (flags & AP_STATUS_SHORT) != 0;
    mdl_text_buffer_t *page;

    if (service == NULL) {
        return DECLINED;
    }
    mdl_scrape_measure(r, service);
    page = mdl_text_buffer_make(r->pool);
    mdl_exposition_write_status(page, is_text ? MDL_STATUS_TEXT : MDL_STATUS_HTML);
    if (is_text) {
        ap_rvputs(r, "DownloadsVersion: ", mdl_build_name(), "\n", mdl_text_buffer_text(page, NULL),
                  NULL);
    } else {
        ap_rvputs(r, "<hr />\n<h2>mod_downloads ", mdl_build_name(), "</h2>\n<table>\n",
                  mdl_text_buffer_text(page, NULL), "</table>\n", NULL);
    }
    return OK;
}

void mdl_status_register(void)
{
    APR_OPTIONAL_HOOK(ap, status_hook, status_show, NULL, NULL, APR_HOOK_MIDDLE);
}

void mdl_status_child_init(const mdl_service_t *of)
{
    service = of;
}
