-- A JSON array of objects.
-- part: given_counts
-- dialect: sqlite3
(SELECT value ->> 'shop_id' AS shop_id, value ->> 'day' AS day, value ->> 'kind' AS kind, value ->> 'n' AS n
    FROM json_each(%s:counts)) g

-- part: given_counts
-- dialect: pgsql
jsonb_to_recordset(%s:counts::jsonb) g (shop_id bigint, day bigint, kind smallint, n bigint)

-- name: day_counts_add
INSERT INTO day_count (shop_id, day, kind, n) SELECT g.shop_id, g.day, g.kind, g.n FROM {{given_counts}} WHERE true
ON CONFLICT (shop_id, day, kind) DO UPDATE SET n = day_count.n + excluded.n

-- name: day_counts
SELECT day, kind, n FROM day_count WHERE shop_id = %lld AND day < %lld:before
ORDER BY day DESC, kind DESC LIMIT %lld
