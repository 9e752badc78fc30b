-- Giving a product to the orders that have another (mod_downloads/core/order/move.h).

-- part: move_columns
job_id, mapping_id, to_mapping_id, license_keys, send_email, key_id, user_name, after_content, after_order_id,
given, skipped, skipped_orders

-- name: move_insert
INSERT INTO move (job_id, mapping_id, to_mapping_id, license_keys, send_email, key_id, user_name, after_content,
    after_order_id, given, skipped, skipped_orders)
VALUES (%s:job_id, %lld:mapping_id, %lld:to_mapping_id, %lld:license_keys, %lld:send_email, %s:key_id,
    %s:user_name, '', 0, 0, 0, '[]')

-- name: move_of_job
SELECT {{move_columns}} FROM move WHERE job_id = %s

-- name: move_newest
SELECT {{move_columns}} FROM move WHERE mapping_id = %lld ORDER BY job_id DESC LIMIT 1

-- name: move_advance
UPDATE move SET after_content = %s, after_order_id = %lld, given = %lld, skipped = %lld, skipped_orders = %s
WHERE job_id = %s

-- An order has access to what a mapping gives.
-- part: move_open
CASE WHEN o.access_status IN ('active', 'held') AND EXISTS (SELECT 1 FROM assignment l
    WHERE l.order_id = a.order_id AND +l.mapping_id = %lld:mapping_id AND l.status = 'active') THEN 1 ELSE 0 END

-- An order has got what the other mapping gives, even if it was revoked.
-- part: move_other
CASE WHEN EXISTS (SELECT 1 FROM assignment h
    WHERE h.order_id = a.order_id AND +h.mapping_id = %lld:to_mapping_id) THEN 1 ELSE 0 END

-- name: move_orders
SELECT a.content, a.order_id, o.storefront_order_id, {{move_open}} AS is_open, {{move_other}} AS has_other
FROM (SELECT content, order_id FROM assignment
    WHERE mapping_id = %lld AND (content, order_id) > (%s:after_content, %lld:after_order_id)
    ORDER BY content, order_id LIMIT %lld) a
JOIN orders o ON o.id = a.order_id
ORDER BY a.content, a.order_id

-- Looks at some of a mapping's purchases.
-- name: move_count
SELECT count(DISTINCT order_id) AS orders,
    count(DISTINCT CASE WHEN has_other = 1 THEN order_id END) AS have,
    count(DISTINCT CASE WHEN has_other = 0 AND is_open = 1 THEN order_id END) AS lack,
    count(*) AS looked
FROM (SELECT a.order_id, {{move_open}} AS is_open, {{move_other}} AS has_other
    FROM (SELECT content, order_id FROM assignment WHERE mapping_id = %lld ORDER BY content, order_id
        LIMIT %lld) a
    JOIN orders o ON o.id = a.order_id) w

-- A shop's emails that wait for their first attempt, among the next in line.
-- name: move_emails
SELECT count(*) FROM (SELECT attempts FROM job
    WHERE lane = 'mail' AND {{due_shop}} = %lld:shop_id AND due_at > 0 ORDER BY due_at LIMIT 1000) w
WHERE attempts = 0
