#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_LENGTH 2000

static mdl_log_sink_fn *current_sink;

void mdl_log_set_sink(mdl_log_sink_fn *sink)
{
    current_sink = sink;
}

/* The message may quote untrusted input, which must not look like another log line. */
static void log_one_line(char *message)
{
    for (; *message != '\0'; message++) {
        if ((unsigned char)*message < 0x20 || *message == 0x7F) {
            *message = ' ';
        }
    }
}

void mdl_log_write(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                   const char *format, ...)
{
    char message[LINE_LENGTH + 1];
    va_list arguments;

    if (current_sink == NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log_one_line(message);
    current_sink(file, line, level, rv, message);
}
