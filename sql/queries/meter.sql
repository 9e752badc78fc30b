-- name: meter_renew
INSERT INTO download_meter (id, leased_until) VALUES (%s, %lld)
ON CONFLICT (id) DO UPDATE SET leased_until = excluded.leased_until

-- name: meters_lost
SELECT id FROM download_meter WHERE leased_until <= %lld ORDER BY leased_until LIMIT %lld

-- name: meter_remove
DELETE FROM download_meter WHERE id = %s AND leased_until <= %lld

-- Its id is its own: it is there when a transaction is repeated whose end was not heard of.
-- name: transfer_begin
INSERT INTO download_transfer (id, session_id, generation, assignment_id, meter_id, ranges, bytes)
VALUES (%s, %s, %lld, %lld, %s, '', 0)
ON CONFLICT (id) DO NOTHING

-- How many of a link run, and what those of its last session have delivered so far.
-- name: transfers_of_session
SELECT COUNT(*), COALESCE(SUM(CASE WHEN t.generation = %lld THEN t.bytes ELSE 0 END), 0)
FROM download_transfer t JOIN download_meter m ON m.id = t.meter_id
WHERE t.session_id = %s AND m.leased_until > %lld

-- name: transfer_of_session
SELECT id FROM download_transfer WHERE session_id = %s AND generation = %lld LIMIT 1

-- name: transfers_of_meter
SELECT id, session_id, generation, ranges, bytes FROM download_transfer
WHERE meter_id = %s ORDER BY session_id LIMIT %lld

-- name: transfer_progress
UPDATE download_transfer SET ranges = %s, bytes = %lld WHERE id = %s

-- name: transfer_end
DELETE FROM download_transfer WHERE id = %s

-- Those whose buyer may not have the file any more, or whose link has sent too much of it.
-- name: transfers_forbidden
SELECT t.id FROM download_transfer t
JOIN assignment a ON a.id = t.assignment_id
JOIN orders o ON o.id = a.order_id
JOIN download_session s ON s.id = t.session_id AND s.generation = t.generation
WHERE t.meter_id = %s AND (o.access_status <> 'active' OR a.status <> 'active'
    OR a.expires_at <= %lld
    OR s.bytes + (SELECT SUM(r.bytes) FROM download_transfer r
        WHERE r.session_id = t.session_id AND r.generation = t.generation) > s.size * %lld)
