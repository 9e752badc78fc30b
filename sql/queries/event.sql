-- name: event_insert
INSERT INTO event (shop_id, type, order_id, data, request_id, created_at)
    VALUES (%lld:shop_id, %s:type, %lld:order_id?0, %s:data, %s:request_id, %lld:created_at)

-- name: event_insert_of_order
INSERT INTO event (shop_id, type, order_id, data, request_id, created_at)
SELECT o.shop_id, %s:type, o.id, %s:data, %s:request_id, %lld:created_at FROM orders o WHERE o.id = %lld

-- name: event_insert_of_email
INSERT INTO event (shop_id, type, order_id, data, request_id, created_at)
SELECT e.shop_id, %s:type, e.order_id, %s:data, e.request_id, %lld:created_at FROM email e WHERE e.id = %lld

-- name: event_insert_for_endpoint
INSERT INTO event (shop_id, type, data, created_at, endpoint_id)
    VALUES (%lld:shop_id, %s:type, %s:data, %lld:created_at, %lld:endpoint_id)
RETURNING id

-- A tag whose stock has fallen to its threshold.
-- name: event_insert_of_tag
-- dialect: sqlite3
INSERT INTO event (shop_id, type, request_id, created_at, data)
SELECT t.shop_id, 'license_key.low', %s:request_id, %lld:created_at, json_object('license_key_tag_id', t.id,
    'available', t.available, 'low_stock_threshold', t.low_stock_threshold)
FROM license_key_tag t WHERE t.id = %lld

-- name: event_insert_of_tag
-- dialect: pgsql
INSERT INTO event (shop_id, type, request_id, created_at, data)
SELECT t.shop_id, 'license_key.low', %s:request_id, %lld:created_at, json_build_object('license_key_tag_id', t.id,
    'available', t.available, 'low_stock_threshold', t.low_stock_threshold)::text
FROM license_key_tag t WHERE t.id = %lld

-- One event for each order that got license keys; the parameter is as in license_keys_give.
-- name: events_insert_given
-- dialect: sqlite3
INSERT INTO event (type, created_at, shop_id, order_id, data)
SELECT 'license_key.delivered', %lld:created_at, o.shop_id, o.id, json_object('license_keys', sum(n))
FROM (
    SELECT (SELECT a.order_id FROM assignment a WHERE a.id = assignment_id) AS order_id, n
    FROM (
        SELECT CAST(value AS INTEGER) AS assignment_id, count(*) AS n
        FROM json_each(%s:pairs) GROUP BY 1
    ) receiver_rows
) given_rows CROSS JOIN orders o WHERE o.id = given_rows.order_id
GROUP BY o.shop_id, o.id

-- name: events_insert_given
-- dialect: pgsql
INSERT INTO event (type, created_at, shop_id, order_id, data)
SELECT 'license_key.delivered', %lld:created_at, o.shop_id, o.id,
    json_build_object('license_keys', sum(n))::text
FROM (
    SELECT (SELECT a.order_id FROM assignment a WHERE a.id = assignment_id) AS order_id, n
    FROM (
        SELECT value::bigint AS assignment_id, count(*) AS n
        FROM jsonb_each_text(%s:pairs::jsonb) GROUP BY 1
    ) receiver_rows
) given_rows CROSS JOIN LATERAL (
    SELECT id, shop_id FROM orders WHERE id = given_rows.order_id OFFSET 0
) o
GROUP BY o.shop_id, o.id

-- Completed downloads: a JSON array of objects. The download of a file, or for an archive (NULL) of any of its
-- files, may have been the last that the assignment allows.
-- part: given_downloads
-- dialect: sqlite3
(SELECT value ->> 'assignment_id' AS assignment_id, value ->> 'asset_id' AS asset_id, value ->> 'bytes' AS bytes
    FROM json_each(%s:downloads)) g

-- part: given_downloads
-- dialect: pgsql
jsonb_to_recordset(%s:downloads::jsonb) g (assignment_id bigint, asset_id bigint, bytes bigint)

-- part: data_of_download
-- dialect: sqlite3
json_object('assignment_id', a.id, 'file_id', g.asset_id, 'title', a.title, 'bytes', g.bytes)

-- part: data_of_download
-- dialect: pgsql
json_build_object('assignment_id', a.id, 'file_id', g.asset_id, 'title', a.title, 'bytes', g.bytes)::text

-- name: events_insert_downloads
INSERT INTO event (shop_id, type, order_id, data, created_at)
SELECT a.shop_id, type_rows.type, a.order_id, {{data_of_download}}, %lld:created_at
FROM {{given_downloads}}
CROSS JOIN assignment a
CROSS JOIN (SELECT 'download.completed' AS type UNION ALL SELECT 'download.limit_reached') type_rows
WHERE a.id = g.assignment_id AND (type_rows.type = 'download.completed' OR (
    SELECT count(*) FROM mapping m CROSS JOIN allowance w
    WHERE m.id = a.mapping_id AND w.assignment_id = a.id AND (g.asset_id IS NULL OR w.asset_id = g.asset_id)
        AND COALESCE(m.download_limit, a.download_limit, %lld:limit) > 0
        AND w.downloads_used
            >= a.quantity * COALESCE(m.download_limit, a.download_limit, %lld:limit) + w.downloads_extra) > 0)

-- One process at a time gives numbers; events that it does not see yet get later numbers.
-- name: events_lock
-- dialect: sqlite3
SELECT 1

-- name: events_lock
-- dialect: pgsql
SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtext('mod_downloads events'))) lock_rows

-- After ANALYZE of a small table SQLite would read all events in place of those that wait.
-- part: by_waiting
-- dialect: sqlite3
INDEXED BY event_waiting

-- part: by_waiting
-- dialect: pgsql

-- name: events_waiting
SELECT n.id, n.shop_id, COALESCE((SELECT c.last FROM event_count c WHERE c.id = n.shop_id), 0) AS last,
    n.type, n.data, n.created_at
FROM event n {{by_waiting}} WHERE n.number IS NULL AND n.id >= %lld:from ORDER BY n.id LIMIT %lld

-- name: event_first_waiting
SELECT id FROM event {{by_waiting}} WHERE number IS NULL ORDER BY id LIMIT 1

-- part: given_numbers
-- dialect: sqlite3
(SELECT value ->> 'id' AS id, value ->> 'number' AS number FROM json_each(%s:numbers)) g

-- part: given_numbers
-- dialect: pgsql
jsonb_to_recordset(%s:numbers::jsonb) g (id bigint, number bigint)

-- Every event exists, so none is inserted. SQLite would plan an update that joins the events by statistics,
-- and after ANALYZE of a small table compare every event with every number.
-- name: events_number
-- dialect: sqlite3
INSERT INTO event (id, shop_id, type, data, created_at, number)
SELECT g.id, 0, '', '', 0, g.number FROM {{given_numbers}} WHERE true
ON CONFLICT (id) DO UPDATE SET number = excluded.number

-- name: events_number
-- dialect: pgsql
UPDATE event AS n SET number = g.number FROM {{given_numbers}} WHERE n.id = g.id

-- name: event_counts_set
INSERT INTO event_count (id, last) SELECT g.id, g.number FROM {{given_numbers}} WHERE true
ON CONFLICT (id) DO UPDATE SET last = excluded.last

-- After the events comes one row without an id: the last number, and the feed.
-- name: event_page
SELECT * FROM (
    SELECT {{event_columns}} FROM event n WHERE n.shop_id = %lld AND n.number > %lld:after AND n.number > 0
    ORDER BY n.number LIMIT %lld
) page_rows
UNION ALL
SELECT NULL, COALESCE((SELECT c.last FROM event_count c WHERE c.id = %lld:shop_id), 0), f.name, NULL, NULL,
    NULL
FROM event_feed f WHERE f.id = 1

-- name: event_feed
SELECT name FROM event_feed WHERE id = 1

-- name: event_feed_renew
UPDATE event_feed SET name = %s WHERE id = 1
