-- A mapping as staff choose it, with the first of its variants.
-- part: choice_columns
m.id, m.storefront_product_id, m.title,
(SELECT v.storefront_variant_id FROM mapping_variant v WHERE v.mapping_id = m.id ORDER BY v.position LIMIT 1)
    AS variant,
(SELECT v.title FROM mapping_variant v WHERE v.mapping_id = m.id ORDER BY v.position LIMIT 1) AS variant_title,
m.is_active

-- The newest of a shop.
-- name: mapping_choices
SELECT {{choice_columns}} FROM mapping m
WHERE m.shop_id = %lld AND m.deleted_at IS NULL AND m.id > 0 ORDER BY m.id DESC LIMIT %lld

-- name: mapping_choice
SELECT {{choice_columns}} FROM mapping m WHERE m.id = %lld AND +m.shop_id = %lld AND +m.deleted_at IS NULL

-- As {{later}}.  updated_at is created_at only in a row that nobody has changed.
-- name: mapping_upsert
INSERT INTO mapping (shop_id, storefront_product_id, variants_hash, title, note, download_type, is_active,
    download_limit, access_days, content, fresh_downloads, created_at, updated_at)
VALUES (%lld:shop_id, %s:storefront_product_id, %s:variants_hash, %s:title, %s:note, %s:download_type,
    %lld:is_active, %lld:download_limit?-1, %lld:access_days?-1, %s:content,
    %lld:fresh_downloads, %lld:now, %lld:now)
ON CONFLICT (shop_id, storefront_product_id, variants_hash) DO UPDATE SET
    title = excluded.title, note = excluded.note, download_type = excluded.download_type, is_active = excluded.is_active,
    download_limit = excluded.download_limit, access_days = excluded.access_days,
    content = excluded.content, fresh_downloads = excluded.fresh_downloads,
    updated_at = CASE WHEN excluded.updated_at > mapping.updated_at + 1000
        THEN excluded.updated_at ELSE mapping.updated_at + 1000 END
RETURNING id, created_at, updated_at

-- name: mapping_replace
UPDATE mapping SET storefront_product_id = %s, variants_hash = %s, title = %s, note = %s, download_type = %s,
    is_active = %lld, download_limit = %lld?-1, access_days = %lld?-1, content = %s,
    fresh_downloads = %lld, updated_at = {{later}}
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL AND {{of_version}}
RETURNING id, created_at, updated_at

-- The variants are a JSON array of [id, title].
-- name: mapping_variants_insert
-- dialect: sqlite3
INSERT INTO mapping_variant (mapping_id, storefront_variant_id, title, position)
SELECT %lld:mapping_id, value ->> 0, value ->> 1, key FROM json_each(%s:variants)

-- name: mapping_variants_insert
-- dialect: pgsql
INSERT INTO mapping_variant (mapping_id, storefront_variant_id, title, position)
SELECT %lld:mapping_id, value ->> 0, value ->> 1, ordinality
FROM jsonb_array_elements(%s:variants::jsonb) WITH ORDINALITY

-- name: mapping_variants_delete
DELETE FROM mapping_variant WHERE mapping_id = %lld

-- name: mapping_files_insert
INSERT INTO mapping_file (mapping_id, asset_id, position)
{{given_list}}

-- name: mapping_files_delete
DELETE FROM mapping_file WHERE mapping_id = %lld

-- name: mapping_packs_insert
INSERT INTO mapping_pack (mapping_id, pack_id, position)
{{given_list}}

-- name: mapping_packs_delete
DELETE FROM mapping_pack WHERE mapping_id = %lld

-- name: mapping_links_insert
INSERT INTO mapping_link (mapping_id, link_id, position)
{{given_list}}

-- name: mapping_links_delete
DELETE FROM mapping_link WHERE mapping_id = %lld

-- name: mapping_license_tags_insert
INSERT INTO mapping_license_key_tag (mapping_id, tag_id, position)
{{given_list}}

-- name: mapping_license_tags_delete
DELETE FROM mapping_license_key_tag WHERE mapping_id = %lld

-- How many files a mapping gives, those of its packs included, each once. On PostgreSQL it is not a join, which
-- would begin with all packs of all shops when the tables are large.
-- name: mapping_count_files
-- dialect: sqlite3
SELECT COUNT(DISTINCT f_rows.asset_id)
FROM (
    SELECT asset_id FROM mapping_file WHERE mapping_id = %lld
    UNION ALL
    SELECT asset_id FROM pack_file
    WHERE pack_id IN (SELECT pack_id FROM mapping_pack WHERE mapping_id = %lld)
) f_rows

-- name: mapping_count_files
-- dialect: pgsql
SELECT COUNT(DISTINCT f_rows.asset_id)
FROM (
    SELECT asset_id FROM mapping_file WHERE mapping_id = %lld
    UNION ALL
    SELECT asset_id FROM pack_file
    WHERE pack_id = ANY (ARRAY(SELECT pack_id FROM mapping_pack WHERE mapping_id = %lld))
) f_rows

-- part: mapping_columns
id, storefront_product_id, title, note, download_type, is_active, download_limit, access_days, content,
fresh_downloads, created_at, updated_at

-- name: mapping_by_id
SELECT {{mapping_columns}} FROM mapping WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL

-- name: mapping_names
SELECT id, storefront_product_id, title, is_active FROM mapping
WHERE +shop_id = %lld AND id {{in_given}} AND +deleted_at IS NULL

-- name: mapping_page
SELECT {{mapping_columns}} FROM mapping
WHERE shop_id = %lld AND deleted_at IS NULL AND id < %lld:before AND id > 0
ORDER BY id DESC LIMIT %lld

-- name: mapping_page_of_state
SELECT {{mapping_columns}} FROM mapping
WHERE shop_id = %lld AND is_active = %lld AND deleted_at IS NULL AND id < %lld:before AND shop_id > 0
ORDER BY id DESC LIMIT %lld

-- Of the next thousand those in a state, or in any (-1).
-- name: mapping_page_of_product
SELECT {{mapping_columns}} FROM (SELECT {{mapping_columns}} FROM mapping
    WHERE shop_id = %lld AND storefront_product_id = %s AND deleted_at IS NULL AND id < %lld:before
    ORDER BY id DESC LIMIT 1000) m_rows
WHERE %lld:is_active < 0 OR is_active = %lld:is_active
ORDER BY id DESC LIMIT %lld

-- part: in_rows
-- dialect: sqlite3
IN (SELECT id FROM given_rows)

-- part: in_rows
-- dialect: pgsql
= ANY (ARRAY(SELECT id FROM given_rows))

-- The lists of given mappings, numbered as in mod_downloads/core/catalog/mapping.c, each in its order.
-- name: mapping_lists
{{given_rows}}
SELECT mapping_id, 0 AS content, storefront_variant_id, position, title
    FROM mapping_variant WHERE mapping_id {{in_rows}}
UNION ALL SELECT mapping_id, 1, CAST(asset_id AS TEXT), position, NULL
    FROM mapping_file WHERE mapping_id {{in_rows}}
UNION ALL SELECT mapping_id, 2, CAST(pack_id AS TEXT), position, NULL
    FROM mapping_pack WHERE mapping_id {{in_rows}}
UNION ALL SELECT mapping_id, 3, CAST(link_id AS TEXT), position, NULL
    FROM mapping_link WHERE mapping_id {{in_rows}}
UNION ALL SELECT mapping_id, 4, CAST(tag_id AS TEXT), position, NULL
    FROM mapping_license_key_tag WHERE mapping_id {{in_rows}}
ORDER BY 1 DESC, 2, 4

-- Before looking for assignments of a mapping: waits for transactions that are making one.
-- name: mapping_lock
SELECT updated_at FROM mapping
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL {{for_update}}

-- Whether orders were made under a mapping, and whether one of them follows its content.
-- name: mapping_assigned
SELECT (SELECT 1 FROM assignment WHERE mapping_id = %lld LIMIT 1) AS is_assigned,
    (SELECT 1 FROM assignment WHERE mapping_id = %lld AND content = 'live' LIMIT 1) AS is_live

-- name: mapping_delete
DELETE FROM mapping WHERE id = %lld

-- name: mapping_retire
UPDATE mapping SET is_active = 0, variants_hash = '#' || CAST(id AS TEXT), deleted_at = %lld:now,
    updated_at = %lld:now
WHERE id = %lld

-- part: packs_of_m
-- dialect: sqlite3
(SELECT group_concat(pack_id, ',') FROM (
    SELECT pack_id FROM mapping_pack WHERE mapping_id = m.id ORDER BY position
))

-- part: packs_of_m
-- dialect: pgsql
(SELECT string_agg(pack_id::text, ',' ORDER BY position) FROM mapping_pack WHERE mapping_id = m.id)

-- part: mapping_for_item
SELECT m.id, COALESCE(m.title || ', ' || v.title, m.title) AS title, m.content,
    COALESCE(m.access_days, (SELECT h.access_days FROM shop h WHERE h.id = m.shop_id)) AS access_days,
    m.download_type, m.download_limit,
    (SELECT h.download_limit FROM shop h WHERE h.id = m.shop_id) AS default_limit,
    CASE WHEN EXISTS (SELECT 1 FROM mapping_license_key_tag t WHERE t.mapping_id = m.id) THEN 1 ELSE 0 END
        AS has_license_keys,
    CASE WHEN EXISTS (SELECT 1 FROM mapping_link l WHERE l.mapping_id = m.id) THEN 1 ELSE 0 END AS has_links,
    CASE WHEN m.content = 'live' THEN {{packs_of_m}} END AS packs
FROM mapping m
LEFT JOIN mapping_variant v ON v.mapping_id = m.id AND v.storefront_variant_id = %s
WHERE m.shop_id = %lld AND m.storefront_product_id = %s AND m.is_active = 1
    AND m.deleted_at IS NULL AND (v.mapping_id IS NOT NULL OR m.variants_hash = '')
ORDER BY CASE WHEN v.mapping_id IS NULL THEN 1 ELSE 0 END, m.id DESC
LIMIT 1

-- The active mapping that serves a product; a mapping that names the variant takes precedence.
-- name: mapping_for_item
-- dialect: sqlite3
{{mapping_for_item}}

-- The mapping can't be deleted until the transaction ends.
-- name: mapping_for_item
-- dialect: pgsql
{{mapping_for_item}} FOR KEY SHARE OF m
