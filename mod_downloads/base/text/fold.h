/*
 * Comparing names as file systems do, and texts as people do who search.
 */
#ifndef MDL_BASE_TEXT_FOLD_H
#define MDL_BASE_TEXT_FOLD_H

#include <apr_pools.h>

/**
 * A key for a name in UTF-8, in p: names that any of these systems treats as the same have the same
 * key.
 * - Windows (NTFS, exFAT) compares character by character in upper case;
 * - macOS (HFS+, APFS) and Linux (casefold of ext4, f2fs) by canonical decomposition and full case
 *   folding (Unicode, section 3.13), without characters that are ignorable by default.
 * Some names that every system tells apart have the same key, too.  The key of a malformed name is
 * the name.
 */
const char *mdl_text_fold(const char *name, apr_pool_t *p);

/**
 * A text in UTF-8 as a search compares it, in p: in small letters, without accents and other marks,
 * compatible characters as one ("ﬁ" is "fi"), and with a space for each character outside ASCII
 * that is no letter, digit or mark.  "" if the text is malformed.
 */
const char *mdl_text_fold_search(const char *text, apr_pool_t *p);

#endif
