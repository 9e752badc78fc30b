/*
 * Logging for code that knows only APR.  Each process sets the sink: httpd's error log in the
 * module, standard error in downloadsctl, none in a unit program.
 */
#ifndef MDL_BASE_LOG_H
#define MDL_BASE_LOG_H

#include <apr_errno.h>

/* The numbers are syslog's, which are httpd's APLOG_* too. */
typedef enum {
    MDL_LOG_ERR = 3,
    MDL_LOG_WARNING = 4,
    MDL_LOG_NOTICE = 5,
    MDL_LOG_INFO = 6,
    MDL_LOG_DEBUG = 7
} mdl_log_level_t;

/** Writes one finished line, which has no newline; it must not keep the pointers. */
typedef void mdl_log_sink_fn(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                             const char *message);

/** Sets the process's sink; NULL drops every line.  Call it before any thread is started. */
void mdl_log_set_sink(mdl_log_sink_fn *sink);

/**
 * Writes one line.  The format begins with the message's own tag, "MDL0001: ".  The sink appends
 * the text of rv unless it is 0.  Never pass a token, an Authorization header or a signed URL.
 * Lines are cut at 2,000 bytes.
 */
void mdl_log_write(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

#define mdl_log(level, rv, ...) mdl_log_write(__FILE__, __LINE__, level, rv, __VA_ARGS__)

#endif
