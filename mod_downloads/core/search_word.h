/*
 * The words by which orders, customers, products and files are found.  Whoever makes, changes or
 * deletes such a thing stores or removes its words in the same transaction.
 *
 * A text is folded (mdl_text_fold_search) and split at spaces.  Each piece is stored from the
 * beginning of each of its parts: "ada.king@a.test" also as "king@a.test", "a.test" and "test".  So
 * the beginning of a word finds a whole address, each part of it, and its host.
 */
#ifndef MDL_CORE_SEARCH_WORD_H
#define MDL_CORE_SEARCH_WORD_H

#include "base/text/json.h"
#include "db/db.h"

/* As the database has them. */
typedef enum {
    MDL_SEARCH_ORDER = 1,
    MDL_SEARCH_CUSTOMER,
    MDL_SEARCH_PRODUCT, /* a mapping */
    MDL_SEARCH_FILE     /* an asset */
} mdl_search_kind_t;

/* --- storing --- */

/** The words of the things that a transaction writes, all of one shop. */
typedef struct {
    apr_int64_t shop_id;
    mdl_json_t *rows;
} mdl_search_words_t;

mdl_search_words_t mdl_search_words(apr_int64_t shop_id, apr_pool_t *p);

/** Adds the words of a text of the thing ref; NULL has none.  Of a long text the first 40 words are
    added, and of a long word the first 100 bytes. */
void mdl_search_add(mdl_search_words_t *words, mdl_search_kind_t kind, apr_int64_t ref,
                    const char *text, apr_pool_t *p);

/** Stores them, by one statement. */
apr_status_t mdl_search_store(mdl_db_t *db, const mdl_search_words_t *words, apr_pool_t *p);

/** Asks for the words that a thing has, for mdl_search_renew. */
apr_status_t mdl_search_ask_words(mdl_db_t *db, mdl_search_kind_t kind, apr_int64_t ref,
                                  mdl_rows_t **had, apr_pool_t *p);

/** Stores the words, all of one thing, in place of those that it had.  Writes nothing if they are
    the same. */
apr_status_t mdl_search_renew(mdl_db_t *db, const mdl_search_words_t *words, mdl_rows_t *had,
                              mdl_search_kind_t kind, apr_int64_t ref, apr_pool_t *p);

/** Removes all words of a thing. */
apr_status_t mdl_search_remove(mdl_db_t *db, mdl_search_kind_t kind, apr_int64_t ref,
                               apr_pool_t *p);

/* --- finding --- */

/** What somebody typed; NULL if it has no word. */
typedef struct mdl_search_query_t mdl_search_query_t;
mdl_search_query_t *mdl_search_query(const char *text, apr_pool_t *p);

/** Asks for a shop's things that have each word of the query, or one that begins with it: for its
    first five words, among the first 1,000 rows of the longest.  At most limit of them, first those
    that have the longest word itself, and each time the newest first. */
apr_status_t mdl_search_ask(mdl_db_t *db, apr_int64_t shop_id, mdl_search_kind_t kind,
                            const mdl_search_query_t *query, int limit, mdl_rows_t **rows,
                            apr_pool_t *p);

/** Reads the ids (apr_int64_t) of what was asked for, with the same limit. */
apr_array_header_t *mdl_search_read(mdl_rows_t *rows, int limit, apr_pool_t *p);

#endif
