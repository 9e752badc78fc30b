-- A beat is a time by the process's own clock; others only watch whether it changes (mod_downloads/core/beat.h).
-- name: meter_renew
INSERT INTO meter (id, alive_until) VALUES (%s:id, %lld:alive_until)
ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until

-- name: meter_beats
SELECT id, alive_until FROM meter

-- Keeps a meter from beating, if it has not beaten since.
-- name: meter_lock
SELECT 1 FROM meter WHERE id = %s AND alive_until = %lld {{for_update}}

-- name: meter_remove
DELETE FROM meter WHERE id = %s

-- The id is random.  The row already exists if a transaction is repeated because the answer to its
-- COMMIT was lost.
-- name: transfer_begin
INSERT INTO download_transfer (id, session_id, generation, assignment_id, meter_id, request_id, files, bytes)
VALUES (%s:id, %s:session_id, %lld:generation, %lld:assignment_id, %s:meter_id, %s:request_id, '', 0)
ON CONFLICT (meter_id, id) DO NOTHING

-- name: transfers_of_meter
SELECT id, session_id, generation, files, bytes, acknowledged, handed_over FROM download_transfer
WHERE meter_id = %s ORDER BY id LIMIT %lld

-- The bytes that transfers have delivered so far. Without LIMIT the list would be read again for each of the
-- process's transfers.
-- name: transfers_progress
-- dialect: sqlite3
UPDATE download_transfer AS t SET files = g_rows.files, bytes = g_rows.bytes,
    acknowledged = g_rows.acknowledged, handed_over = g_rows.handed_over
FROM (SELECT %s:meter_id AS meter_id, value ->> 'id' AS id, value ->> 'files' AS files,
    value ->> 'bytes' AS bytes, value ->> 'acknowledged' AS acknowledged, value ->> 'handed_over' AS handed_over
    FROM json_each(%s:progress) LIMIT -1) g_rows
WHERE t.meter_id = g_rows.meter_id AND t.id = g_rows.id
RETURNING id

-- name: transfers_progress
-- dialect: pgsql
UPDATE download_transfer AS t SET files = g.files, bytes = g.bytes, acknowledged = g.acknowledged,
    handed_over = g.handed_over
FROM (SELECT %s:meter_id AS meter_id, r.*
    FROM jsonb_to_recordset(%s:progress::jsonb) r (id text COLLATE "C", files text, bytes bigint,
        acknowledged bigint, handed_over bigint) OFFSET 0) g
WHERE t.meter_id = g.meter_id AND t.id = g.id
RETURNING t.id

-- name: transfers_end
-- dialect: sqlite3
DELETE FROM download_transfer WHERE meter_id = %s AND id IN (SELECT value FROM json_each(%s:transfers))
RETURNING id

-- name: transfers_end
-- dialect: pgsql
DELETE FROM download_transfer t
USING (SELECT %s:meter_id AS meter_id, id COLLATE "C"
    FROM jsonb_array_elements_text(%s:transfers::jsonb) id OFFSET 0) g
WHERE t.meter_id = g.meter_id AND t.id = g.id
RETURNING t.id

-- The transfers whose customer may no longer have the file, or whose session has sent too much. Those of an
-- order whose page was replaced have the page's id, because their sessions may belong to an earlier page.
-- name: transfers_forbidden
SELECT id, session_id, CASE WHEN forbidden THEN NULL ELSE page_id END AS page_id
FROM (SELECT t.id, t.session_id, o.page_id, o.page_replaced_at,
    h.blocked_at IS NOT NULL OR o.access_status <> 'active' OR a.status <> 'active' OR a.expires_at <= %lld:now
        OR s.bytes + (SELECT SUM(r.bytes) FROM download_transfer r
            WHERE r.session_id = t.session_id AND r.generation = t.generation) > s.size * %lld:factor
        AS forbidden
FROM download_transfer t
JOIN assignment a ON a.id = t.assignment_id
JOIN orders o ON o.id = a.order_id
JOIN shop h ON h.id = o.shop_id
JOIN download_session s ON s.id = t.session_id AND s.generation = t.generation
WHERE t.meter_id = %s) t_rows
WHERE forbidden OR page_replaced_at IS NOT NULL
