#include "base/http/object_class.h"

#include <errno.h>
#include <string.h>

#include "base/http/easy.h"
#include "base/http/object_store.h"

#define CLOCK "RequestTimeTooSkewed"

/* Codes whose meaning does not follow from the status, or which need other words. */
static const struct {
    const char *code;
    apr_status_t rv;
    const char *advice;
} codes[] = {
    {"NoSuchKey", APR_ENOENT, "there is no such object"},
    {"NoSuchUpload", MDL_OBJECT_EBROKEN, "there is no such upload"},
    {"InvalidPart", MDL_OBJECT_EBROKEN, "a part is gone or has changed"},
    {"InvalidPartOrder", MDL_OBJECT_EBROKEN, "the parts are out of order"},
    {"EntityTooSmall", MDL_OBJECT_EBROKEN, "a part is smaller than 5 MiB"},
    {"BadDigest", MDL_OBJECT_EBROKEN, "the bytes have changed on their way"},
    {"XAmzContentSHA256Mismatch", MDL_OBJECT_EBROKEN, "the bytes have changed on their way"},
    {"RequestTimeout", MDL_OBJECT_EAWAY, "it did not get the request in time"},
    {"SlowDown", MDL_OBJECT_EAWAY, "it is busy"},
    {"QuotaExceeded", APR_ENOSPC, "its quota is used up"},
    {CLOCK, MDL_OBJECT_EDENIED, "this machine's clock and the store's differ: set them by NTP"},
    {"SignatureDoesNotMatch", MDL_OBJECT_EDENIED,
     "the secret key in DownloadsObjectKeyFile is wrong, or a proxy changes requests"},
    {"InvalidAccessKeyId", MDL_OBJECT_EDENIED,
     "it does not know the access key in DownloadsObjectKeyFile"},
    {"ExpiredToken", MDL_OBJECT_EDENIED,
     "the session token has expired: write a new one to DownloadsObjectKeyFile, reload httpd"},
    {"InvalidToken", MDL_OBJECT_EDENIED, "the session token in DownloadsObjectKeyFile is wrong"},
    {"AuthorizationHeaderMalformed", MDL_OBJECT_EDENIED, "DownloadsObjectRegion is wrong"},
    {"NoSuchBucket", MDL_OBJECT_EDENIED, "the bucket in DownloadsObjectStore does not exist"},
    {"AccessDenied", MDL_OBJECT_EDENIED,
     "the policy of the key must allow it to get, put, delete and list objects and multipart "
     "uploads in this bucket"},
    {"NotImplemented", MDL_OBJECT_EDENIED, "this store can't do what mod_downloads needs"},
};

static apr_status_t class_of_status(int status, const char **advice)
{
    switch (status) {
    case 408:
    case 409:
    case 425:
    case 429:
        *advice = "it is busy";
        return MDL_OBJECT_EAWAY;
    case 501:
        *advice = "this store can't do what mod_downloads needs";
        return MDL_OBJECT_EDENIED;
    case 507:
        *advice = "it is full";
        return APR_ENOSPC;
    default:
        break;
    }
    if (status >= 500) {
        *advice = "it has a fault of its own";
        return MDL_OBJECT_EAWAY;
    }
    *advice = status < 400
                  ? "it redirects: DownloadsObjectStore or DownloadsObjectRegion is another's"
                  : "look at DownloadsObjectStore, DownloadsObjectRegion, the key and its policy";
    return MDL_OBJECT_EDENIED;
}

apr_status_t mdl_object_class_of_answer(int status, const char *code, const char **advice)
{
    int good = status >= 200 && status < 300;

    *advice = "";
    if (good && *code == '\0') {
        return APR_SUCCESS;
    }
    for (apr_size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(codes[i].code, code) == 0) {
            *advice = codes[i].advice;
            return codes[i].rv;
        }
    }
    /* An error behind a good status came up once the headers were sent. */
    return class_of_status(good ? 500 : status, advice);
}

int mdl_object_code_is_clock(const char *code)
{
    return strcmp(code, CLOCK) == 0;
}

int mdl_object_code_is_changed(const char *code)
{
    return strcmp(code, "BadDigest") == 0 || strcmp(code, "XAmzContentSHA256Mismatch") == 0;
}

apr_status_t mdl_object_class_of_failure(CURL *easy, CURLcode code, const char **predicate)
{
    long error = 0;
    curl_off_t began = 0;

    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &began);
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        *predicate = mdl_http_easy_certificate_fault(easy);
        return MDL_OBJECT_EDENIED;
    case CURLE_SSL_CACERT_BADFILE:
        *predicate = "can't be verified: DownloadsObjectCAFile can't be read";
        return MDL_OBJECT_EDENIED;
    case CURLE_COULDNT_RESOLVE_HOST:
        *predicate = "has no address: the name can't be resolved";
        return MDL_OBJECT_EAWAY;
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
        *predicate = error == ECONNREFUSED ? "refuses connections on that port"
                                           : "can't be reached";
        return MDL_OBJECT_EAWAY;
    case CURLE_SSL_CONNECT_ERROR:
        *predicate = "failed in the TLS handshake";
        return MDL_OBJECT_EAWAY;
    case CURLE_OPERATION_TIMEDOUT:
        *predicate = began != 0 ? "did not answer in time" : "took no connection in time";
        return MDL_OBJECT_EAWAY;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        *predicate = "sent what is no answer of HTTP";
        return MDL_OBJECT_EDENIED;
    default:
        *predicate = began != 0 ? "broke off" : "can't be reached";
        return MDL_OBJECT_EAWAY;
    }
}
