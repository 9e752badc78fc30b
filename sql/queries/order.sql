-- Members that a request leaves out keep what they were.
-- name: customer_upsert
INSERT INTO customer (shop_id, storefront_customer_id, email, first_name, last_name, locale,
    created_at, updated_at)
VALUES (%lld, %s, %s, %s, %s, %s, %lld, %lld)
ON CONFLICT (shop_id, storefront_customer_id) DO UPDATE SET
    email = COALESCE(excluded.email, customer.email),
    first_name = COALESCE(excluded.first_name, customer.first_name),
    last_name = COALESCE(excluded.last_name, customer.last_name),
    locale = COALESCE(excluded.locale, customer.locale),
    updated_at = excluded.updated_at
RETURNING id, email

-- The update locks the order's row, so that assignments of one order go one after the other.
-- name: order_upsert
INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status,
    fraud_decision, created_at, updated_at)
VALUES (%lld, %s, %lld, %s, 'active', 'not_checked', %lld, %lld)
ON CONFLICT (shop_id, storefront_order_id) DO UPDATE SET updated_at = excluded.updated_at
RETURNING id, customer_id, access_status

-- name: order_fraud_passed
UPDATE orders SET fraud_decision = 'passed' WHERE id = %lld AND fraud_decision = 'not_checked'

-- part: order_columns
o.id, o.storefront_order_id, o.page_id, o.access_status, o.access_reason, o.fraud_decision,
o.created_at, c.id, c.storefront_customer_id, c.email, c.first_name, c.last_name, c.locale,
s.id, s.name, s.email

-- name: order_by_storefront_id
SELECT {{order_columns}}
FROM orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
WHERE o.shop_id = %lld AND o.storefront_order_id = %s

-- name: order_by_page_id
SELECT {{order_columns}}
FROM orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
WHERE o.page_id = %s

-- name: order_by_id
SELECT {{order_columns}}
FROM orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
WHERE o.id = %lld

-- name: assignment_insert
INSERT INTO assignment (order_id, storefront_product_id, storefront_variant_id, quantity,
    mapping_id, content, status, expires_at, created_at)
VALUES (%lld, %s, %s, %lld, %lld, %s, 'active', %lld, %lld)
ON CONFLICT (order_id, storefront_product_id, storefront_variant_id) DO NOTHING
RETURNING id

-- name: assignment_pin_files
INSERT INTO assignment_file (assignment_id, asset_id, position)
SELECT a.id, f.asset_id, f.position
FROM assignment a JOIN mapping_file f ON f.mapping_id = a.mapping_id
WHERE a.id = %lld AND a.content = 'pinned'

-- name: assignments_of_order
SELECT a.id, a.storefront_product_id, a.storefront_variant_id, a.quantity, a.status,
    a.mapping_id, m.download_type, a.expires_at, a.created_at
FROM assignment a JOIN mapping m ON m.id = a.mapping_id
WHERE a.order_id = %lld
ORDER BY a.id

-- Every file of an order's assignments, whether it follows the mapping or was pinned.
-- name: files_of_order
SELECT f.assignment_id, s.id, s.filename, s.title, s.content_type, s.status, s.sha256, b.size,
    COALESCE(w.downloads_used, 0), f.download_limit, COALESCE(w.downloads_extra, 0), s.updated_at
FROM (
    SELECT a.id AS assignment_id, mf.asset_id, mf.position, m.download_limit
    FROM assignment a JOIN mapping m ON m.id = a.mapping_id
    JOIN mapping_file mf ON mf.mapping_id = m.id
    WHERE a.order_id = %lld AND a.content = 'live'
    UNION ALL
    SELECT a.id, af.asset_id, af.position, m.download_limit
    FROM assignment a JOIN mapping m ON m.id = a.mapping_id
    JOIN assignment_file af ON af.assignment_id = a.id
    WHERE a.order_id = %lld AND a.content = 'pinned'
) f
JOIN asset s ON s.id = f.asset_id
LEFT JOIN blob b ON b.sha256 = s.sha256
LEFT JOIN allowance w ON w.assignment_id = f.assignment_id AND w.asset_id = f.asset_id
ORDER BY f.assignment_id, f.position
