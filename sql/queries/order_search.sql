-- An order as a list shows it.
-- part: order_line
o.id, o.storefront_order_id, o.access_status, o.created_at, c.storefront_customer_id, c.email, c.first_name,
c.last_name, (SELECT CASE WHEN e.held <> 0 THEN 'held'
    WHEN e.status = 'sent' AND e.bounced_at IS NOT NULL THEN 'bounced' ELSE e.status END
    FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1)

-- name: order_lines
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.shop_id = %lld AND o.id < %lld AND o.id > 0
ORDER BY o.id DESC LIMIT %lld

-- Of any state but "active".
-- name: order_lines_of_state
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.shop_id = %lld AND o.access_status = %s AND o.access_status <> 'active' AND o.id < %lld
ORDER BY o.id DESC LIMIT %lld

-- Those whose number begins with these digits, the shortest match first.  A letter comes behind all digits
-- in every collation.
-- name: order_lines_of_number
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.shop_id = %lld AND o.storefront_order_id >= %s AND o.storefront_order_id < %s || 'z'
ORDER BY o.storefront_order_id LIMIT %lld

-- name: order_lines_of_customer
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.customer_id = (SELECT id FROM customer WHERE shop_id = %lld AND storefront_customer_id = %s)
ORDER BY o.created_at DESC LIMIT %lld

-- Of the customers with an address, as many as there is room for, each with the newest orders.
-- name: order_lines_of_email
-- dialect: sqlite3
SELECT {{order_line}}
FROM customer c CROSS JOIN orders o
WHERE c.id IN (SELECT id FROM customer WHERE shop_id = %lld AND email IS NOT NULL AND lower(email) = lower(%s)
        LIMIT %lld)
    AND o.id IN (SELECT q.id FROM orders q WHERE q.customer_id = c.id ORDER BY q.created_at DESC LIMIT %lld)
ORDER BY o.created_at DESC LIMIT %lld

-- name: order_lines_of_email
-- dialect: pgsql
WITH c AS MATERIALIZED (
    SELECT * FROM customer WHERE shop_id = %lld AND email IS NOT NULL AND lower(email) = lower(%s)
    LIMIT %lld)
SELECT {{order_line}}
FROM c CROSS JOIN LATERAL (
    SELECT q.* FROM orders q WHERE q.customer_id = c.id ORDER BY q.created_at DESC LIMIT %lld) o
ORDER BY o.created_at DESC LIMIT %lld
