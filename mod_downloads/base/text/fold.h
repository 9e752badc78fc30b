/*
 * Names as file systems compare them.
 */
#ifndef MDL_BASE_TEXT_FOLD_H
#define MDL_BASE_TEXT_FOLD_H

#include <apr_pools.h>

/**
 * A key of a name of UTF-8: names that one of these takes for the same have the same key.
 * - Windows (NTFS, exFAT) compares character by character in upper case;
 * - macOS (HFS+, APFS) and Linux (casefold of ext4, f2fs) by canonical decomposition and full case
 *   folding (Unicode, section 3.13), without characters that are ignorable by default.
 * Some names that no system confuses have the same key, too.  What is not well-formed is its own.
 */
const char *mdl_text_fold(const char *name, apr_pool_t *p);

#endif
