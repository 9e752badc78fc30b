/*
 * Characters of UTF-8 (RFC 3629).
 */
#ifndef MDL_BASE_TEXT_UTF8_H
#define MDL_BASE_TEXT_UTF8_H

#include <apr.h>
#include <apr_pools.h>

/** Reads the character at text and returns its length in bytes; U+FFFD and 1 where it is not
    well-formed. */
apr_size_t mdl_utf8_read(const char *text, apr_uint32_t *c);

/** Whether all of a text is well-formed. */
int mdl_utf8_valid(const char *text);

/** Whether all of a text is ASCII. */
int mdl_utf8_is_ascii(const char *text);

/** The number of a text's characters; of one that is well-formed. */
apr_size_t mdl_utf8_length(const char *text);

/**
 * The text without what nobody sees at its two ends, in p unless it is text itself: white space of
 * Unicode, line ends among it, byte order marks, and the marks without a width of their own that
 * editors, spreadsheets and web pages leave there.  Texts that differ in that alone are the same to
 * people (contract, section 1).
 */
const char *mdl_utf8_trimmed(const char *text, apr_pool_t *p);

/** Whether text has 1 to max bytes and no ASCII control character, as the names that people give to
    things.  That it is well-formed is not checked. */
int mdl_utf8_is_name(const char *text, apr_size_t max);

/** Whether text has 1 to max characters, none of them an ASCII control. */
int mdl_utf8_is_text(const char *text, apr_size_t max);

/** What somebody else wrote, as it is quoted in a text of ours, allocated from p: max characters at
    most, the last of them an ellipsis where there are more, with spaces for those that disturb a
    file's name (below). */
const char *mdl_utf8_quoted(const char *text, apr_size_t max, apr_pool_t *p);

/** Whether a character is a control, ends a line, or turns the direction of the text behind it, so
    that a name could rewrite what stands beside it, or "exe" reads as if it ended in "pdf". */
int mdl_utf8_disturbs(apr_uint32_t c);

/** The same, or an invisible mark.  The names of people need those of direction, the names of files
    don't. */
int mdl_utf8_disturbs_filename(apr_uint32_t c);

#endif
