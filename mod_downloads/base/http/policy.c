#include "base/http/policy.h"

#include <apr_strings.h>

#include "base/http/url.h"

void mdl_http_policy_init(mdl_http_policy_t *policy, apr_pool_t *p)
{
    policy->hosts = apr_array_make(p, 4, sizeof(const char *));
    policy->networks = apr_array_make(p, 2, sizeof(apr_ipsubnet_t *));
    policy->ports = apr_array_make(p, 2, sizeof(int));
}

mdl_http_policy_t *mdl_http_policy_for(const mdl_http_policy_t *policy, const char *url,
                                       apr_pool_t *p)
{
    mdl_http_policy_t *own = apr_pmemdup(p, policy, sizeof *own);
    const char *host = mdl_http_url_host(url, p);

    own->hosts = apr_array_make(p, 1, sizeof(const char *));
    own->max_redirects = 0;
    if (host != NULL) {
        APR_ARRAY_PUSH(own->hosts, const char *) = host;
    }
    return own;
}
