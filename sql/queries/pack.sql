-- part: pack_columns
id, name, created_at, updated_at

-- name: pack_insert
INSERT INTO pack (shop_id, name, created_at, updated_at) VALUES (%lld, %s, %lld, %lld)
RETURNING {{pack_columns}}

-- name: pack_by_id
SELECT {{pack_columns}} FROM pack WHERE id = %lld AND +shop_id = %lld

-- name: pack_page
SELECT {{pack_columns}} FROM pack WHERE shop_id = %lld AND id < %lld ORDER BY id DESC LIMIT %lld

-- name: pack_change
UPDATE pack SET name = COALESCE(%s, name), updated_at = %lld WHERE id = %lld AND +shop_id = %lld
RETURNING {{pack_columns}}

-- Before looking for references: waits for a mapping that is just adding the pack.
-- name: pack_lock
SELECT {{pack_columns}} FROM pack WHERE id = %lld AND +shop_id = %lld {{for_update}}

-- name: pack_delete
DELETE FROM pack WHERE id = %lld

-- The files of a JSON array's packs.
-- name: pack_files
SELECT pack_id, asset_id FROM pack_file
WHERE pack_id {{in_given}}
ORDER BY pack_id DESC, position

-- name: pack_files_delete
DELETE FROM pack_file WHERE pack_id = %lld

-- name: pack_files_insert
INSERT INTO pack_file (pack_id, asset_id, position)
{{given_list}}

-- Which of a JSON array's ids are the shop's; they can't be deleted until the transaction ends.
-- name: pack_known
SELECT id FROM pack
WHERE +shop_id = %lld AND id {{in_given}}
{{for_key_share}}

-- name: pack_mappings
SELECT h.mapping_id FROM mapping_pack h CROSS JOIN mapping m
WHERE h.pack_id = %lld AND m.id = h.mapping_id AND +m.deleted_at IS NULL
ORDER BY h.mapping_id
LIMIT %lld

-- name: pack_orders
SELECT o.storefront_order_id
FROM mapping_pack h {{following_orders}} AND h.pack_id = %lld
LIMIT %lld
