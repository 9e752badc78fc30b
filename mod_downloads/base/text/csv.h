/*
 * Lines of CSV (RFC 4180) for spreadsheets.
 */
#ifndef MDL_BASE_TEXT_CSV_H
#define MDL_BASE_TEXT_CSV_H

#include "base/text/text_buffer.h"

/** What a file begins with, so that spreadsheets read it as UTF-8: a byte order mark. */
#define MDL_CSV_BEGIN "\xef\xbb\xbf"

/** Writes a line of fields; NULL is an empty one.  A field that a spreadsheet would take for a
    formula (it begins with "=", "+", "-", "@", a tab or CR) gets a "'" before it. */
void mdl_csv_line(mdl_text_buffer_t *to, const char *const *fields, int count);

#endif
