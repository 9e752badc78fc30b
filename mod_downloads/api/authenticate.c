#include "api/authenticate.h"

#include <strings.h>

#include "api/rate.h"

/* The token of "Authorization: Bearer <token>", or NULL. */
static const char *authenticate_bearer(request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Authorization");

    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) {
        return NULL;
    }
    for (header += 7; *header == ' '; header++) {
    }
    return header;
}

static apr_status_t authenticate_run(void *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                                     void *arg)
{
    return mdl_request_run(request, how, effect, arg);
}

apr_status_t mdl_authenticate(mdl_request_t *request)
{
    mdl_key_verify_t verify = {.secret = request->service->secret,
                               .cache = request->service->key_cache,
                               .run = authenticate_run,
                               .baton = request};
    const char *token = authenticate_bearer(request->r);
    apr_status_t rv = mdl_key_verify(&verify, token);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    request->caller = verify.caller;
    switch (verify.validity) {
    case MDL_KEY_VALID:
        return APR_SUCCESS;
    case MDL_KEY_SHOP_NOT_APPROVED:
        return mdl_problem_set(&request->problem, 403, "shop_not_approved",
                               "This shop is not approved to use the API.");
    case MDL_KEY_SHOP_BLOCKED:
        return mdl_problem_set(&request->problem, 403, "shop_blocked",
                               "This shop is blocked; ask the operator of the service.");
    case MDL_KEY_INVALID:
        break;
    }
    /* Charged only now, so that others of its network can't lock out a valid key. */
    if (token != NULL && (rv = mdl_rate_charge_forged(request)) != APR_SUCCESS) {
        return rv;
    }
    apr_table_setn(request->r->headers_out, "WWW-Authenticate", "Bearer realm=\"downloads\"");
    return mdl_problem_set(&request->problem, 401, "unauthorized",
                           "A valid API key is required: Authorization: Bearer adk_live_…");
}
