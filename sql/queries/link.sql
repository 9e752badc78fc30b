-- part: link_columns
id, title, url, created_at, updated_at

-- name: link_insert
INSERT INTO link (shop_id, title, url, created_at, updated_at)
    VALUES (%lld:shop_id, %s:title, %s:url, %lld:now, %lld:now)
RETURNING {{link_columns}}

-- name: link_by_id
SELECT {{link_columns}} FROM link WHERE id = %lld AND +shop_id = %lld

-- name: link_page
SELECT {{link_columns}} FROM link WHERE shop_id = %lld AND id < %lld:before ORDER BY id DESC LIMIT %lld

-- name: link_change
UPDATE link SET title = COALESCE(%s:title, title), url = COALESCE(%s:url, url), updated_at = {{later}}
WHERE id = %lld AND +shop_id = %lld AND {{of_version}}
RETURNING {{link_columns}}

-- Before looking for references: waits for a transaction that is adding the link to a mapping.
-- name: link_lock
SELECT {{link_columns}} FROM link WHERE id = %lld AND +shop_id = %lld {{for_update}}

-- name: link_delete
DELETE FROM link WHERE id = %lld

-- Which of a JSON array's ids are the shop's; they can't be deleted until the transaction ends.
-- name: link_known
SELECT id FROM link
WHERE +shop_id = %lld AND id {{in_given}}
{{for_key_share}}

-- name: link_mappings
SELECT h.mapping_id, m.title, m.storefront_product_id FROM mapping_link h CROSS JOIN mapping m
WHERE h.link_id = %lld:id AND m.id = h.mapping_id AND +m.deleted_at IS NULL
ORDER BY h.mapping_id
LIMIT %lld

-- name: link_orders
SELECT o.storefront_order_id
FROM mapping_link h {{following_orders}} AND h.link_id = %lld:id
LIMIT %lld

-- name: link_pinned_orders
SELECT o.storefront_order_id
FROM assignment_link h JOIN assignment a ON a.id = h.assignment_id
JOIN orders o ON o.id = a.order_id
WHERE h.link_id = %lld:id
LIMIT %lld
