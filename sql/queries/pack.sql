-- part: pack_columns
id, name, created_at, updated_at

-- name: pack_insert
INSERT INTO pack (shop_id, name, created_at, updated_at) VALUES (%lld:shop_id, %s:name, %lld:now, %lld:now)
RETURNING {{pack_columns}}

-- name: pack_by_id
SELECT {{pack_columns}} FROM pack WHERE id = %lld AND +shop_id = %lld

-- name: pack_page
SELECT {{pack_columns}} FROM pack WHERE shop_id = %lld AND id < %lld:before ORDER BY id DESC LIMIT %lld

-- name: pack_change
UPDATE pack SET name = COALESCE(%s:name, name), updated_at = {{later}}
WHERE id = %lld AND +shop_id = %lld AND {{of_version}}
RETURNING {{pack_columns}}

-- Before looking for references: waits for a transaction that is adding the pack to a mapping.
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

-- Which of a JSON array's ids are the shop's; they can be neither deleted nor changed until the transaction
-- ends, so that the mapping's files can be counted.
-- name: pack_known
SELECT id FROM pack
WHERE +shop_id = %lld AND id {{in_given}}
{{for_share}}

-- A mapping with the pack that gives more files than a limit, each counted once, and their number. It looks at
-- any 500 mappings and at most 250,000 rows, however many mappings have the pack; to sort them it would read
-- all first. With the plus PostgreSQL can't begin with the mappings.
-- name: pack_mapping_too_large
WITH h_rows AS MATERIALIZED (
    SELECT h.mapping_id FROM mapping_pack h CROSS JOIN mapping m
    WHERE h.pack_id = %lld AND m.id = +h.mapping_id AND +m.deleted_at IS NULL
    LIMIT 500
)
SELECT f_rows.mapping_id, COUNT(DISTINCT f_rows.asset_id) AS files
FROM (
    SELECT h_rows.mapping_id, mf.asset_id
    FROM h_rows CROSS JOIN mapping_file mf
    WHERE mf.mapping_id = h_rows.mapping_id
    UNION ALL
    SELECT h_rows.mapping_id, pf.asset_id
    FROM h_rows CROSS JOIN mapping_pack mp CROSS JOIN pack_file pf
    WHERE mp.mapping_id = h_rows.mapping_id AND pf.pack_id = mp.pack_id
    LIMIT 250000
) f_rows
GROUP BY f_rows.mapping_id
HAVING COUNT(DISTINCT f_rows.asset_id) > %lld:most
LIMIT 1

-- name: pack_mappings
SELECT h.mapping_id, m.title, m.storefront_product_id FROM mapping_pack h CROSS JOIN mapping m
WHERE h.pack_id = %lld:id AND m.id = h.mapping_id AND +m.deleted_at IS NULL
ORDER BY h.mapping_id
LIMIT %lld

-- name: pack_orders
SELECT o.storefront_order_id
FROM mapping_pack h {{following_orders}} AND h.pack_id = %lld:id
LIMIT %lld
