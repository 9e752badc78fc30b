/*
 * What every outgoing request sets on its libcurl handle, and what libcurl says of a certificate.
 * Private to base/http.
 */
#ifndef MDL_BASE_HTTP_EASY_H
#define MDL_BASE_HTTP_EASY_H

#include <curl/curl.h>

/** The most bytes of an answer's headers. */
#define MDL_HTTP_MAX_HEADERS (64 * 1024)

/**
 * Sets the guards: no proxy, no redirect, no scheme beside http (if allowed) and https, TLS
 * from 1.2 on with a verified certificate (ca_file in PEM, or NULL: the system's), HTTP/1.1, no
 * signals. Returns 0 without memory.
 */
int mdl_http_easy_guard(CURL *easy, int allow_http, const char *ca_file);

/** What is wrong with the certificate of a host, after CURLE_PEER_FAILED_VERIFICATION: "shows a
    certificate that has expired". */
const char *mdl_http_easy_certificate_fault(CURL *easy);

#endif
