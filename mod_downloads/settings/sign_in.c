#include "settings/sign_in.h"

#include <string.h>

#include "settings/frame.h"

int mdl_sign_in_show(mdl_visit_t *visit)
{
    const char *query = visit->r->args != NULL ? visit->r->args : "";
    mdl_json_t *data = mdl_frame_data(visit);

    mdl_json_add_bool(data, "failed", strcmp(query, "failed") == 0);
    mdl_json_add_bool(data, "out", strcmp(query, "out") == 0);
    return mdl_frame_send(visit, HTTP_OK, "sign_in.html", data, NULL);
}

int mdl_sign_in_end(mdl_visit_t *visit)
{
    return mdl_frame_message(visit, HTTP_OK, "close_browser");
}
