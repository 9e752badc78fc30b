-- name: lease_renew
INSERT INTO download_meter (id, leased_until) VALUES (%s, %lld)
ON CONFLICT (id) DO UPDATE SET leased_until = excluded.leased_until

-- name: lease_expired
SELECT id FROM download_meter WHERE leased_until <= %lld ORDER BY leased_until LIMIT 1

-- name: lease_remove
DELETE FROM download_meter WHERE id = %s AND leased_until <= %lld

-- The id is random.  The row already exists if a transaction is repeated because the answer to its
-- COMMIT was lost.
-- name: transfer_begin
INSERT INTO download_transfer (id, session_id, generation, assignment_id, meter_id, ranges, bytes)
VALUES (%s, %s, %lld, %lld, %s, '', 0)
ON CONFLICT (id) DO NOTHING

-- How many transfers of a link run, and what those of its last session have delivered so far.
-- name: transfers_of_session
SELECT COUNT(*), COALESCE(SUM(CASE WHEN t.generation = %lld THEN t.bytes ELSE 0 END), 0)
FROM download_transfer t JOIN download_meter m ON m.id = t.meter_id
WHERE t.session_id = %s AND m.leased_until > %lld

-- name: transfer_of_session
SELECT id FROM download_transfer WHERE session_id = %s AND generation = %lld LIMIT 1

-- name: transfers_of_lease
SELECT id, session_id, generation, ranges, bytes FROM download_transfer
WHERE meter_id = %s ORDER BY session_id LIMIT %lld

-- name: transfer_progress
UPDATE download_transfer SET ranges = %s, bytes = %lld WHERE id = %s

-- name: transfer_end
DELETE FROM download_transfer WHERE id = %s

-- The transfers whose customer may not have the file any more, or whose session has sent too much.
-- name: transfers_forbidden
SELECT t.id FROM download_transfer t
JOIN assignment a ON a.id = t.assignment_id
JOIN orders o ON o.id = a.order_id
JOIN download_session s ON s.id = t.session_id AND s.generation = t.generation
WHERE t.meter_id = %s AND (o.access_status <> 'active' OR a.status <> 'active'
    OR a.expires_at <= %lld
    OR s.bytes + (SELECT SUM(r.bytes) FROM download_transfer r
        WHERE r.session_id = t.session_id AND r.generation = t.generation) > s.size * %lld)
