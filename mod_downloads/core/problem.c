#include "core/problem.h"

apr_status_t mdl_refuse(mdl_refusal_t *refusal, int status, const char *code, const char *message)
{
    refusal->status = status;
    refusal->code = code;
    refusal->message = message;
    return MDL_EREFUSED;
}

void mdl_refusal_detail(mdl_refusal_t *refusal, const char *pointer, const char *code,
                        const char *message, apr_pool_t *p)
{
    if (refusal->details == NULL) {
        refusal->details = apr_array_make(p, 4, sizeof(mdl_detail_t));
    }
    if (refusal->details->nelts == MDL_MAX_DETAILS) {
        return;
    }
    APR_ARRAY_PUSH(refusal->details, mdl_detail_t) = (mdl_detail_t){pointer, code, message};
}

void mdl_refusal_clear(mdl_refusal_t *refusal)
{
    *refusal = (mdl_refusal_t){0};
}
