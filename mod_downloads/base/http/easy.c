#include "base/http/easy.h"

#define USER_AGENT  "mod_downloads"
#define KEEPALIVE_S 60L

int mdl_http_easy_guard(CURL *easy, int allow_http, const char *ca_file)
{
    const char *schemes = allow_http ? "http,https" : "https";

    /* NULL would use a proxy from the environment, which could connect to forbidden addresses.
       Without QUICK_EXIT a silent name server would hold up all transfers of this thread. */
    return curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           (ca_file == NULL || curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S) == CURLE_OK;
}

/* By OpenSSL's code (X509_V_ERR_…), which libcurl passes on.  libcurl compares names itself, and
   gives 1 or 0 if they differ. */
const char *mdl_http_easy_certificate_fault(CURL *easy)
{
    long verified = 0;

    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verified);
    switch (verified) {
    case 0:
    case 1:
    case 62:
        return "shows a certificate for another name";
    case 9:
        return "shows a certificate that is not valid yet";
    case 10:
        return "shows a certificate that has expired";
    case 2:
    case 18:
    case 19:
    case 20:
    case 21:
        return "shows a certificate whose issuer is not trusted";
    default:
        return "shows a certificate that can't be verified";
    }
}
