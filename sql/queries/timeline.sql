-- name: timeline_insert
INSERT INTO order_timeline (order_id, action, assignment_ids, key_id, user_name, reason, details, created_at)
VALUES (%lld:order_id, %s:action, %s:assignment_ids, %s:key_id, %s:user_name, %s:reason, %s:details,
    %lld:created_at)

-- name: timeline_insert_all
{{given_rows}}
INSERT INTO order_timeline (order_id, action, key_id, user_name, reason, details, created_at)
SELECT id, %s:action, %s:key_id, %s:user_name, %s:reason, %s:details, %lld:created_at FROM given_rows

-- name: timeline_of_order
SELECT t.id, t.action, t.assignment_ids, t.key_id,
    (SELECT k.name FROM api_key k WHERE k.id = t.key_id) AS key_name, t.user_name, t.reason, t.details,
    t.created_at
FROM order_timeline t
WHERE t.order_id = %lld AND t.id < %lld:before ORDER BY t.id DESC LIMIT %lld

-- name: timeline_count
SELECT count(*) AS count, min(created_at) AS oldest FROM order_timeline
WHERE order_id = %lld AND action = %s AND created_at > %lld:since
