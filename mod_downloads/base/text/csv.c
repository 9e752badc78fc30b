#include "base/text/csv.h"

#include <string.h>

static void csv_field(mdl_text_buffer_t *to, const char *text)
{
    int is_formula = *text != '\0' && strchr("=+-@\t\r", *text) != NULL;
    int quotes = strpbrk(text, "\",\r\n") != NULL;

    mdl_text_buffer_put(to, quotes ? "\"" : "");
    mdl_text_buffer_put(to, is_formula ? "'" : "");
    for (const char *at = text; *at != '\0';) {
        apr_size_t length = strcspn(at, "\"");

        mdl_text_buffer_write(to, at, length);
        at += length;
        if (*at == '"') {
            mdl_text_buffer_put(to, "\"\"");
            at++;
        }
    }
    mdl_text_buffer_put(to, quotes ? "\"" : "");
}

void mdl_csv_line(mdl_text_buffer_t *to, const char *const *fields, int count)
{
    for (int i = 0; i < count; i++) {
        mdl_text_buffer_put(to, i > 0 ? "," : "");
        csv_field(to, fields[i] != NULL ? fields[i] : "");
    }
    mdl_text_buffer_put(to, "\r\n");
}
