#include "api/upload.h"

#include "api/answer.h"
#include "request.h"

int mdl_upload_handle(request_rec *r)
{
    mdl_call_t call = {.r = r, .request_id = mdl_answer_request_id(r)};

    mdl_request_leave_body(r);
    mdl_refuse(&call.refusal, 404, "upload_not_found",
               "There is no such upload, or it has expired.");
    return mdl_answer_refusal(&call);
}
