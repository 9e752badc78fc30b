-- name: email_insert
INSERT INTO email (shop_id, order_id, recipient, message_id, status, attempts, created_at)
VALUES (%lld, %lld, %s, %s, %s, 0, %lld)
RETURNING id

-- name: email_latest_of_order
SELECT status, recipient, attempts, last_error, sent_at FROM email
WHERE order_id = %lld ORDER BY id DESC LIMIT 1

-- name: email_by_id
SELECT order_id, recipient, message_id, created_at FROM email WHERE id = %lld

-- name: email_result
UPDATE email SET status = %s, attempts = %lld, last_error = %s, sent_at = %lld WHERE id = %lld
