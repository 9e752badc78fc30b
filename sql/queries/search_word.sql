-- The words of search (mod_downloads/core/search_word.h).

-- Rows to insert: a JSON array of [kind, ref, word].
-- name: search_words_insert
-- dialect: sqlite3
INSERT INTO search_word (shop_id, kind, ref, word)
SELECT %lld:shop_id, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(%s:words) WHERE true
ON CONFLICT DO NOTHING

-- name: search_words_insert
-- dialect: pgsql
INSERT INTO search_word (shop_id, kind, ref, word)
SELECT %lld:shop_id, (value->>0)::smallint, (value->>1)::bigint, value->>2
FROM jsonb_array_elements(%s:words::jsonb)
ON CONFLICT DO NOTHING

-- name: search_words_of
SELECT word FROM search_word WHERE ref = %lld AND kind = %lld

-- name: search_words_delete
DELETE FROM search_word WHERE ref = %lld AND kind = %lld

-- The words that a query has besides its longest.
-- part: other_words
-- dialect: sqlite3
json_each(%s:others) q_rows

-- part: other_words
-- dialect: pgsql
jsonb_array_elements_text(%s:others::jsonb) q_rows

-- part: last_character
-- dialect: sqlite3
char(1114111)

-- part: last_character
-- dialect: pgsql
chr(1114111)

-- Things that have a query's longest word, and the others, too: at most twice each. Each is looked up by the index
-- on ref, until there are enough. Both databases keep the order of the inner query, whose LIMIT they obey.
-- name: search_words_find
SELECT c_rows.ref
FROM (
    SELECT DISTINCT f_rows.ref, CASE WHEN f_rows.word = %s:word THEN 1 ELSE 0 END AS is_whole
    FROM (
        SELECT word, ref FROM search_word
        WHERE shop_id = %lld AND kind = %lld AND word >= %s:word AND word < %s:behind
        ORDER BY word, ref LIMIT %lld:looked
    ) f_rows
    ORDER BY is_whole DESC, f_rows.ref DESC LIMIT %lld:looked
) c_rows
WHERE NOT EXISTS (
    SELECT 1 FROM {{other_words}} WHERE NOT EXISTS (
        SELECT 1 FROM search_word w
        WHERE w.ref = c_rows.ref AND w.kind = %lld
            AND w.word >= q_rows.value AND w.word < q_rows.value || {{last_character}}))
LIMIT %lld
