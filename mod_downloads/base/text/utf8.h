/*
 * Characters of UTF-8 (RFC 3629).
 */
#ifndef MDL_BASE_TEXT_UTF8_H
#define MDL_BASE_TEXT_UTF8_H

#include <apr.h>
#include <apr_pools.h>

/** Decodes a character and returns its length in bytes; U+FFFD and 1 if it is malformed. */
apr_size_t mdl_utf8_read(const char *text, apr_uint32_t *c);

/** Whether all of a text is well-formed. */
int mdl_utf8_valid(const char *text);

/** Whether all of a text is ASCII. */
int mdl_utf8_is_ascii(const char *text);

/** The number of characters in a well-formed text. */
apr_size_t mdl_utf8_length(const char *text);

/**
 * The text without invisible characters at both ends: Unicode white space with line ends, byte
 * order marks, and zero-width marks that editors, spreadsheets and web pages leave there.  Returns
 * text itself or a copy in p.  Texts that differ only in these look the same to people (contract,
 * section 1).
 */
const char *mdl_utf8_trimmed(const char *text, apr_pool_t *p);

/** Whether text can be a name that people give: 1 to max bytes, no ASCII control character.  Does
    not check that it is well-formed. */
int mdl_utf8_is_name(const char *text, apr_size_t max);

/** Whether text has 1 to max characters, none of them an ASCII control. */
int mdl_utf8_is_text(const char *text, apr_size_t max);

/** Whether text has 1 to max characters, and no ASCII control but tabs and line feeds. */
int mdl_utf8_is_lines(const char *text, apr_size_t max);

/** The text trimmed, with a line feed for each line end. */
const char *mdl_utf8_lines(const char *text, apr_pool_t *p);

/** Foreign text made safe to quote, in p: at most max characters, the last an ellipsis if it was
    longer, with spaces for characters that mdl_utf8_disturbs_filename. */
const char *mdl_utf8_quoted(const char *text, apr_size_t max, apr_pool_t *p);

/** Whether a character is a control, a line end or a mark of direction, by which a name could alter
    the text beside it, or a name that ends in "exe" seem to end in "pdf". */
int mdl_utf8_disturbs(apr_uint32_t c);

/** The same, or an invisible mark of direction, which people's names need but file names don't. */
int mdl_utf8_disturbs_filename(apr_uint32_t c);

#endif
