/*
 * Lines of CSV: quotes, and what a spreadsheet would take for a formula.
 */
#include "t/unit/tap.h"

#include "base/text/csv.h"

static const char *line(apr_pool_t *p, int count, const char *const *fields)
{
    mdl_text_buffer_t *text = mdl_text_buffer_make(p);

    mdl_csv_line(text, fields, count);
    return mdl_text_buffer_text(text, NULL);
}

#define LINE(p, ...)                                                                               \
    line(p, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)),                           \
         (const char *[]){__VA_ARGS__})

int main(void)
{
    apr_pool_t *p = tap_begin();

    is_str(LINE(p, "a", "b c", ""), "a,b c,\r\n", "plain fields stand as they are");
    is_str(LINE(p, NULL, "b"), ",b\r\n", "NULL is empty");
    is_str(LINE(p, "a,b", "say \"no\"", "two\nlines"),
           "\"a,b\",\"say \"\"no\"\"\",\"two\nlines\"\r\n", "others are quoted");
    is_str(LINE(p, "=1+1", "+1", "-1", "@a", "\tb"), "'=1+1,'+1,'-1,'@a,'\tb\r\n",
           "a formula is text");
    is_str(LINE(p, "\r=1", "=\"a\""), "\"'\r=1\",\"'=\"\"a\"\"\"\r\n", "also a quoted one");
    is_str(LINE(p, "a=1", "1-2"), "a=1,1-2\r\n", "other places of these characters do no harm");
    return tap_end(p);
}
