-- name: event_insert
INSERT INTO order_event (order_id, action, assignment_ids, key_id, user_name, reason, details, created_at)
VALUES (%lld, %s, %s, %s, %s, %s, %s, %lld)

-- name: events_of_order
SELECT id, action, assignment_ids, key_id, user_name, reason, details, created_at FROM order_event
WHERE order_id = %lld AND id < %lld ORDER BY id DESC LIMIT %lld

-- name: event_count
SELECT count(*), min(created_at) FROM order_event
WHERE order_id = %lld AND action = %s AND created_at > %lld
