-- Requests for an email with the links of all orders of an address (mod_downloads/core/order/find_request.h).

-- The shop that a request is for, and how many requests wait, up to a limit.
-- name: find_shop
SELECT s.id, s.name, COALESCE(s.reply_to, s.email) AS shop_email, s.blocked_at, s.accent, s.languages, s.logo_sha256, s.logo_width, s.logo_height,
    (SELECT count(*) FROM (SELECT 1 FROM find_request r WHERE r.shop_id = s.id AND r.due_at IS NOT NULL
        LIMIT %lld) r_rows) AS waiting
FROM shop s WHERE s.domain = %s

-- Within an hour a repetition changes nothing. Later it asks again, unless the first still waits.
-- name: find_request_insert
INSERT INTO find_request (shop_id, address_mac, address, asked_at, due_at)
VALUES (%lld:shop_id, %s:address_mac, %s:address, {{now}}, {{now}})
ON CONFLICT (shop_id, address_mac) DO UPDATE SET
    address = excluded.address, asked_at = excluded.asked_at,
    due_at = COALESCE(find_request.due_at, excluded.due_at)
WHERE find_request.asked_at <= excluded.asked_at - 3600000000

-- name: find_request_waits
SELECT 1 AS waits FROM find_request WHERE due_at <= {{now}} ORDER BY due_at LIMIT 1

-- Locks the first that are due: a second node waits here, and then sees what the first has sent.
-- name: find_requests_due
SELECT shop_id, address_mac, address FROM find_request WHERE due_at <= {{now}} ORDER BY due_at LIMIT %lld {{for_update}}

-- Within the last hour: when the shop had its last email but some, and when the address had one of any shop.
-- name: find_request_sent
SELECT (SELECT r.sent_at FROM find_request r
        WHERE r.shop_id = %lld AND r.sent_at > {{now}} - 3600000000 AND r.sent_at <= {{now}}
        ORDER BY r.sent_at DESC LIMIT 1 OFFSET %lld:but) AS by_shop,
    (SELECT r.sent_at FROM find_request r
        WHERE r.address_mac = %s AND r.sent_at > {{now}} - 3600000000 AND r.sent_at <= {{now}}
        ORDER BY r.sent_at DESC LIMIT 1) AS to_address

-- name: find_request_due
UPDATE find_request SET due_at = %lld?0 WHERE shop_id = %lld AND address_mac = %s

-- name: find_request_send
UPDATE find_request SET due_at = NULL, sent_at = {{now}}, job_id = %s WHERE shop_id = %lld AND address_mac = %s

-- name: find_request_of_job
SELECT address FROM find_request WHERE shop_id = %lld AND job_id = %s

-- The newest customers with an address: a guest is a customer of one order.
-- name: find_customers
SELECT id FROM customer WHERE shop_id = %lld AND lower(email) = lower(%s:email) AND email IS NOT NULL
ORDER BY id DESC LIMIT %lld

-- The newest orders whose emails go to an address: of its customers, and those that have it as their own.
-- name: find_orders
-- dialect: sqlite3
SELECT o.page_id, o.created_at, COALESCE(o.name, o.storefront_order_id) AS called, c.locale
FROM (
    SELECT q.id FROM (SELECT value AS id FROM json_each(%ids)) g CROSS JOIN orders q
    WHERE q.id IN (SELECT w.id FROM orders w WHERE w.customer_id = g.id AND w.recipient IS NULL
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
    UNION
    SELECT id FROM (SELECT w.id FROM orders w
        WHERE w.shop_id = %lld AND lower(w.recipient) = lower(%s:email) AND w.recipient IS NOT NULL
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
) q_rows CROSS JOIN orders o CROSS JOIN customer c
WHERE o.id = q_rows.id AND c.id = o.customer_id AND +o.shop_id = %lld
    AND lower({{recipient:o}}) = lower(%s:email)
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: find_orders
-- dialect: pgsql
SELECT o.page_id, o.created_at, COALESCE(o.name, o.storefront_order_id) AS called, c.locale
FROM (
    SELECT q.id FROM unnest(%ids) g (id) CROSS JOIN LATERAL (
        SELECT w.id FROM orders w WHERE w.customer_id = g.id AND w.recipient IS NULL
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld) q
    UNION
    (SELECT w.id FROM orders w
        WHERE w.shop_id = %lld AND lower(w.recipient) = lower(%s:email) AND w.recipient IS NOT NULL
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
) q_rows CROSS JOIN LATERAL (SELECT * FROM orders WHERE id = q_rows.id OFFSET 0) o
    CROSS JOIN LATERAL (SELECT * FROM customer WHERE id = o.customer_id OFFSET 0) c
WHERE +o.shop_id = %lld AND lower({{recipient:o}}) = lower(%s:email)
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld
