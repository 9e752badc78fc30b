-- name: mapping_upsert
INSERT INTO mapping (shop_id, storefront_product_id, variants_hash, download_type, is_active,
    download_limit, access_days, content, created_at, updated_at)
VALUES (%lld, %s, %s, %s, %lld, %lld, %lld, %s, %lld, %lld)
ON CONFLICT (shop_id, storefront_product_id, variants_hash) DO UPDATE SET
    download_type = excluded.download_type, is_active = excluded.is_active,
    download_limit = excluded.download_limit, access_days = excluded.access_days,
    content = excluded.content, updated_at = excluded.updated_at
RETURNING id, created_at, updated_at

-- name: mapping_files_delete
DELETE FROM mapping_file WHERE mapping_id = %lld

-- name: mapping_files_insert
-- dialect: sqlite3
INSERT INTO mapping_file (mapping_id, asset_id, position)
SELECT %lld, CAST(value AS INTEGER), key FROM json_each(%s)

-- name: mapping_files_insert
-- dialect: pgsql
INSERT INTO mapping_file (mapping_id, asset_id, position)
SELECT %lld, value::bigint, ordinality
FROM jsonb_array_elements_text(%s::jsonb) WITH ORDINALITY

-- The set of variants is part of a mapping's natural key: written once, never changed.
-- name: mapping_variants_insert
-- dialect: sqlite3
INSERT INTO mapping_variant (mapping_id, storefront_variant_id, position)
SELECT %lld, value, key FROM json_each(%s) WHERE true
ON CONFLICT (mapping_id, storefront_variant_id) DO NOTHING

-- name: mapping_variants_insert
-- dialect: pgsql
INSERT INTO mapping_variant (mapping_id, storefront_variant_id, position)
SELECT %lld, value, ordinality
FROM jsonb_array_elements_text(%s::jsonb) WITH ORDINALITY
ON CONFLICT (mapping_id, storefront_variant_id) DO NOTHING

-- The active mapping that serves a product: one that names the variant before one for the product.
-- name: mapping_for_item
SELECT m.id, m.content, m.access_days
FROM mapping m
LEFT JOIN mapping_variant v ON v.mapping_id = m.id AND v.storefront_variant_id = %s
WHERE m.shop_id = %lld AND m.storefront_product_id = %s AND m.is_active = 1
    AND (v.mapping_id IS NOT NULL OR m.variants_hash = '')
ORDER BY CASE WHEN v.mapping_id IS NULL THEN 1 ELSE 0 END, m.id DESC
LIMIT 1
