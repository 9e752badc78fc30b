/*
 * Text within HTML, also within an attribute's value in quotes.
 */
#ifndef MDL_BASE_TEXT_HTML_ESCAPE_H
#define MDL_BASE_TEXT_HTML_ESCAPE_H

#include "base/text/text_buffer.h"

/** Writes a text with & < > " and ' escaped; control characters, but tabs and line ends, become
    U+FFFD. */
void mdl_html_escape(mdl_text_buffer_t *out, const char *text);

/** Whether the bytes from from to to, before a NUL, have anything to escape. */
int mdl_html_is_special(const char *from, const char *to);

#endif
