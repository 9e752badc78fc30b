#include "core/search_word.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/text/fold.h"
#include "core/ids.h"

#define WORDS_MAX   40   /* of a text */
#define WORD_LENGTH 100  /* bytes */
#define QUERY_MAX   5    /* words */
#define LOOKED      1000 /* rows */

/* Behind every word that has the word before it as its beginning. */
#define BEHIND "\xF4\x8F\xBF\xBF"

/* Outside ASCII, mdl_text_fold_search leaves only letters, digits and marks. */
static int is_of_word(char c)
{
    return (c & 0x80) != 0 || apr_isalnum(c);
}

static int is_space(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7F;
}

/* The next piece of a folded text, without marks at both ends; *at is moved behind it.  NULL: there
   is none. */
static char *piece_next(const char **at, apr_pool_t *p)
{
    const char *begin = *at, *end;

    while (*begin != '\0' && !is_of_word(*begin)) {
        begin++;
    }
    for (end = begin; *end != '\0' && !is_space(*end); end++) {
    }
    *at = end;
    while (end > begin && !is_of_word(end[-1])) {
        end--;
    }
    return end > begin ? apr_pstrmemdup(p, begin, (apr_size_t)(end - begin)) : NULL;
}

/* At most WORD_LENGTH bytes, and no part of a character. */
static const char *word_cut(const char *word, apr_pool_t *p)
{
    apr_size_t length = strlen(word);

    if (length <= WORD_LENGTH) {
        return word;
    }
    length = WORD_LENGTH;
    while (((unsigned char)word[length] & 0xC0) == 0x80) {
        length--;
    }
    return apr_pstrmemdup(p, word, length);
}

/* --- storing --- */

mdl_search_words_t mdl_search_words(apr_int64_t shop_id, apr_pool_t *p)
{
    return (mdl_search_words_t){.shop_id = shop_id, .rows = mdl_json_array(p)};
}

static void words_add_row(mdl_search_words_t *words, mdl_search_kind_t kind, apr_int64_t ref,
                          const char *word)
{
    mdl_json_t *row = mdl_json_add_array(words->rows, NULL);

    mdl_json_add_int(row, NULL, kind);
    mdl_json_add_int(row, NULL, ref);
    mdl_json_add_string(row, NULL, word);
}

void mdl_search_add(mdl_search_words_t *words, mdl_search_kind_t kind, apr_int64_t ref,
                    const char *text, apr_pool_t *p)
{
    const char *at = text != NULL ? mdl_text_fold_search(text, p) : "";
    int added = 0;
    char *piece;

    while (added < WORDS_MAX && (piece = piece_next(&at, p)) != NULL) {
        for (const char *part = piece; added < WORDS_MAX && *part != '\0'; part++) {
            if (is_of_word(*part) && (part == piece || !is_of_word(part[-1]))) {
                words_add_row(words, kind, ref, word_cut(part, p));
                added++;
            }
        }
    }
}

apr_status_t mdl_search_store(mdl_db_t *db, const mdl_search_words_t *words, apr_pool_t *p)
{
    return mdl_json_length(words->rows) == 0
               ? APR_SUCCESS
               : mdl_db_exec(db, NULL, p,
                             MDL_Q(SEARCH_WORDS_INSERT, .shop_id = words->shop_id,
                                   .words = mdl_json_text(words->rows, NULL, p)));
}

apr_status_t mdl_search_remove(mdl_db_t *db, mdl_search_kind_t kind, apr_int64_t ref, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(SEARCH_WORDS_DELETE, .ref = ref, .kind = kind));
}

/* Tells whether the rows are the words. */
static int words_are(const mdl_search_words_t *words, mdl_rows_t *rows, apr_pool_t *p)
{
    apr_hash_t *distinct = apr_hash_make(p);
    unsigned int same = 0, other = 0;

    for (apr_size_t i = 0; i < mdl_json_length(words->rows); i++) {
        const char *word = mdl_json_string(mdl_json_element(mdl_json_element(words->rows, i), 2));

        apr_hash_set(distinct, word, APR_HASH_KEY_STRING, word);
    }
    while (mdl_rows_next(rows)) {
        const char *word = mdl_rows_text(rows, 0);

        *(apr_hash_get(distinct, word, APR_HASH_KEY_STRING) != NULL ? &same : &other) += 1;
    }
    return other == 0 && same == apr_hash_count(distinct);
}

apr_status_t mdl_search_ask_words(mdl_db_t *db, mdl_search_kind_t kind, apr_int64_t ref,
                                  mdl_rows_t **had, apr_pool_t *p)
{
    return mdl_db_select(db, had, p, MDL_Q(SEARCH_WORDS_OF, .ref = ref, .kind = kind));
}

apr_status_t mdl_search_renew(mdl_db_t *db, const mdl_search_words_t *words, mdl_rows_t *had,
                              mdl_search_kind_t kind, apr_int64_t ref, apr_pool_t *p)
{
    apr_status_t rv;

    if (words_are(words, had, p)) {
        return APR_SUCCESS;
    }
    rv = mdl_search_remove(db, kind, ref, p);
    return rv == APR_SUCCESS ? mdl_search_store(db, words, p) : rv;
}

/* --- finding --- */

struct mdl_search_query_t {
    const char *longest;
    const char *others; /* a JSON array */
};

static int length_compare(const void *a, const void *b)
{
    apr_size_t first = strlen(*(const char *const *)a), second = strlen(*(const char *const *)b);

    return (second > first) - (second < first);
}

mdl_search_query_t *mdl_search_query(const char *text, apr_pool_t *p)
{
    const char *at = mdl_text_fold_search(text, p);
    const char *words[QUERY_MAX];
    mdl_json_t *others = mdl_json_array(p);
    mdl_search_query_t *query;
    int count = 0;

    while (count < QUERY_MAX && (words[count] = piece_next(&at, p)) != NULL) {
        words[count] = word_cut(words[count], p);
        count++;
    }
    if (count == 0) {
        return NULL;
    }
    /* A long word is a rare one, most likely. */
    qsort(words, (size_t)count, sizeof *words, length_compare);
    for (int i = 1; i < count; i++) {
        mdl_json_add_string(others, NULL, words[i]);
    }
    query = apr_palloc(p, sizeof *query);
    query->longest = words[0];
    query->others = mdl_json_text(others, NULL, p);
    return query;
}

apr_status_t mdl_search_ask(mdl_db_t *db, apr_int64_t shop_id, mdl_search_kind_t kind,
                            const mdl_search_query_t *query, int limit, mdl_rows_t **rows,
                            apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(SEARCH_WORDS_FIND, .word = query->longest, .shop_id = shop_id,
                               .kind = kind, .behind = apr_pstrcat(p, query->longest, BEHIND, NULL),
                               .looked = LOOKED, .others = query->others, .limit = 2 * limit));
}

apr_array_header_t *mdl_search_read(mdl_rows_t *rows, int limit, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 16, sizeof(apr_int64_t));

    while (mdl_rows_next(rows)) {
        apr_int64_t ref = mdl_rows_int(rows, 0);

        if (ids->nelts < limit && !mdl_ids_has(ids, ref)) {
            APR_ARRAY_PUSH(ids, apr_int64_t) = ref;
        }
    }
    return ids;
}
