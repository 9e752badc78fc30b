-- An order as a list shows it.
-- part: order_line
o.id, o.storefront_order_id, o.access_status, o.created_at, c.storefront_customer_id, c.email, c.first_name,
c.last_name, (SELECT CASE WHEN e.held <> 0 THEN 'held'
    WHEN e.status = 'sent' AND e.bounced_at IS NOT NULL THEN 'bounced' ELSE e.status END
    FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1) AS email_status

-- name: order_lines_by_id
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.id {{in_given}}

-- The status of the newest email of the order o.
-- part: order_email
COALESCE((SELECT CASE WHEN e.held <> 0 THEN 'held'
        WHEN e.status = 'sent' AND e.bounced_at IS NOT NULL THEN 'bounced' ELSE e.status END
    FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1), 'not_requested')

-- Whether the order o matches the filters; a filter that is not given is NULL, or 0.
-- part: order_fits
CASE WHEN +o.shop_id = %lld AND o.access_status = COALESCE(%s:access, o.access_status)
    AND o.created_at >= %lld:created_since AND o.created_at < %lld:created_before
    AND o.updated_at >= %lld:updated_since
    AND (COALESCE(%s:product, '') = '' OR (SELECT count(*) FROM assignment a
        WHERE a.order_id = o.id AND a.storefront_product_id = %s:product) > 0)
    AND (COALESCE(%s:email_status, '') = '' OR {{order_email}} = %s:email_status) THEN 1 ELSE 0 END

-- The orders of a shop in some sequence, with their positions; a fixed number of rows is read.
-- name: order_walk
SELECT o.created_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND (o.created_at, o.id) < (%lld:key, %lld:id) AND o.created_at >= %lld:created_since
    AND o.created_at > 0
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- Of any state but "active".
-- name: order_walk_of_state
SELECT o.created_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND o.access_status = %s:access AND o.access_status <> 'active'
    AND (o.created_at, o.id) < (%lld:key, %lld:id) AND o.created_at >= %lld:created_since
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_update
SELECT o.updated_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND (o.updated_at, o.id) < (%lld:key, %lld:id) AND o.updated_at >= %lld:updated_since
    AND o.updated_at > 0
ORDER BY o.updated_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_product
SELECT o.id, o.id, {{order_fits}} AS fits
FROM (SELECT DISTINCT a.order_id FROM assignment a
    WHERE a.shop_id = %lld AND a.shop_id > 0 AND a.storefront_product_id = %s:product AND a.order_id < %lld:id
    ORDER BY a.order_id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY o.id DESC

-- By the emails that did not arrive, the newest first; only the newest email of an order counts.
-- name: order_walk_of_undelivered
SELECT q.id, o.id, CASE WHEN q.id = (SELECT e.id FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1)
    THEN {{order_fits}} ELSE 0 END AS fits
FROM (SELECT id, order_id FROM email
    WHERE shop_id = %lld AND (status IN ('failed', 'no_recipient') OR bounced_at IS NOT NULL) AND id < %lld:key
    ORDER BY id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY q.id DESC

-- name: order_walk_of_customers
-- dialect: sqlite3
SELECT o.created_at, o.id, {{order_fits}} AS fits
FROM (SELECT value AS id FROM json_each(%ids)) c CROSS JOIN orders o
WHERE o.id IN (SELECT q.id FROM orders q WHERE q.customer_id = c.id
    AND (q.created_at, q.id) < (%lld:key, %lld:id) AND q.created_at >= %lld:created_since
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld)
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_customers
-- dialect: pgsql
SELECT o.created_at, o.id, {{order_fits}} AS fits
FROM unnest(%ids) c (id) CROSS JOIN LATERAL (
    SELECT q.* FROM orders q WHERE q.customer_id = c.id
        AND (q.created_at, q.id) < (%lld:key, %lld:id) AND q.created_at >= %lld:created_since
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld) o
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- The newest orders of customers.
-- name: orders_of_customers
-- dialect: sqlite3
SELECT o.id
FROM (SELECT value AS id FROM json_each(%ids)) c CROSS JOIN orders o
WHERE o.id IN (SELECT q.id FROM orders q WHERE q.customer_id = c.id
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld)
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: orders_of_customers
-- dialect: pgsql
SELECT o.id
FROM unnest(%ids) c (id) CROSS JOIN LATERAL (
    SELECT q.id, q.created_at FROM orders q WHERE q.customer_id = c.id
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld) o
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: customer_of_number
SELECT id FROM customer
WHERE shop_id = %lld AND storefront_customer_id = %s
    AND (COALESCE(%s:email, '') = '' OR lower(email) = lower(%s:email))

-- name: customers_of_email
SELECT id FROM customer
WHERE shop_id = %lld AND email IS NOT NULL AND lower(email) = lower(%s:email) LIMIT %lld

-- Orders whose number begins with these digits, the shortest match first. A letter sorts after all digits in
-- every collation.
-- name: order_lines_of_number
SELECT {{order_line}}, {{order_fits}} AS fits FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.shop_id = %lld AND o.storefront_order_id >= %s:text AND o.storefront_order_id < %s:text || 'z'
ORDER BY o.storefront_order_id LIMIT %lld

-- name: order_lines_of_customer
SELECT {{order_line}}, {{order_fits}} AS fits FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.customer_id = (SELECT id FROM customer WHERE shop_id = %lld AND storefront_customer_id = %s)
ORDER BY o.created_at DESC LIMIT %lld
