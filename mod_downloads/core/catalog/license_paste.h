/*
 * License keys as somebody pastes them into a form: one a line, or a CSV file (RFC 4180).
 */
#ifndef MDL_CORE_CATALOG_LICENSE_PASTE_H
#define MDL_CORE_CATALOG_LICENSE_PASTE_H

#include "base/text/json.h"
#include "core/problem.h"

/**
 * Reads keys from text into an array of strings, in p.  Lines end in LF, CRLF or
 * CR; empty lines count for nothing, nor does a byte order mark.  A first line with a name such as
 * "License key" in one of its columns makes the rest a table, with commas, semicolons or tabs,
 * whose column that is. Without it each line is a key; one with a comma or a semicolon must stand
 * in quotes, since it could be a table's.
 *
 * Refused, with the number of the first faulty line: 400 license_keys_none, license_keys_table (a
 * table whose columns have no such name), license_key_invalid, and 413 too_many_keys.
 */
apr_status_t mdl_license_paste(const char *text, const mdl_json_t **keys, mdl_problem_t *problem,
                               apr_pool_t *p);

#endif
