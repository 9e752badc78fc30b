-- name: email_insert
INSERT INTO email (shop_id, order_id, recipient, message_id, status, held, attempts, created_at)
VALUES (%lld, %lld, %s, %s, %s, %lld, 0, %lld)
RETURNING id

-- The newest email of each order in a JSON array of ids.
-- name: emails_latest
{{given_rows}}
SELECT e.order_id, e.status, e.recipient, e.attempts, e.last_error, e.sent_at, e.held
FROM given_rows
JOIN email e ON e.id = (SELECT max(l.id) FROM email l WHERE l.order_id = given_rows.id)

-- Held emails go to the address that the customer has by now.
-- name: email_release
UPDATE email SET held = 0, recipient = COALESCE((SELECT c.email FROM orders o
    JOIN customer c ON c.id = o.customer_id WHERE o.id = email.order_id), recipient)
WHERE order_id = %lld AND held = 1
RETURNING id

-- name: email_by_id
SELECT order_id, recipient, message_id, created_at FROM email WHERE id = %lld

-- name: email_result
UPDATE email SET status = %s, attempts = %lld, last_error = %s, sent_at = %lld WHERE id = %lld
