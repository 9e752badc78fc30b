#include "base/http/policy.h"

void mdl_http_policy_init(mdl_http_policy_t *policy, apr_pool_t *p)
{
    policy->hosts = apr_array_make(p, 4, sizeof(const char *));
    policy->networks = apr_array_make(p, 2, sizeof(apr_ipsubnet_t *));
    policy->ports = apr_array_make(p, 2, sizeof(int));
}
