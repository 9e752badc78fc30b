/*
 * What an object store's answer means: try again, tell the operator, or begin anew.  Private to
 * base/http.
 */
#ifndef MDL_BASE_HTTP_OBJECT_CLASS_H
#define MDL_BASE_HTTP_OBJECT_CLASS_H

#include <apr_errno.h>
#include <curl/curl.h>

/**
 * The error of an answer, by its status and the store's code ("" if it gave none).  *advice gets
 * what it means and what to do.  A status of 2xx is APR_SUCCESS, unless there is a code.
 */
apr_status_t mdl_object_class_of_answer(int status, const char *code, const char **advice);

/** The error of a request that had no answer, or half of one, by libcurl's code.  *predicate gets
    what the host did, such as "broke off". */
apr_status_t mdl_object_class_of_failure(CURL *easy, CURLcode code, const char **predicate);

/** Whether the store refused this machine's clock. */
int mdl_object_code_is_clock(const char *code);

/** Whether bytes were changed on their way to the store, so that they may be sent again. */
int mdl_object_code_is_changed(const char *code);

#endif
