-- name: asset_insert
INSERT INTO asset (shop_id, status, filename, title, content_type, category_id, source_url, version,
    filename_guessed, title_guessed, created_at, updated_at)
VALUES (%lld:shop_id, 'pending', %s:filename, %s:title, %s:content_type, %lld:category_id?0, %s:source_url, 1,
    %lld:filename_guessed, %lld:title_guessed, %lld:created_at, %lld:updated_at)
RETURNING id

-- part: asset_columns
a.id, a.status, a.filename, a.title, a.content_type, a.sha256, a.size, a.source_url, a.version,
a.category_id, a.note, a.former_version, a.former_sha256, a.former_size, a.former_note, a.former_until, a.created_at, a.updated_at

-- name: asset_by_id
SELECT {{asset_columns}} FROM asset a
WHERE a.id = %lld AND +a.shop_id = %lld AND +a.deleted_at IS NULL

-- name: assets_by_id
SELECT {{asset_columns}} FROM asset a
WHERE +a.shop_id = %lld AND a.id {{in_given}} AND +a.deleted_at IS NULL

-- Locks an asset, also against new references to it.
-- name: asset_lock
SELECT id FROM asset WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL {{for_update}}

-- The list. Each filter that can come first has a statement with an index of its own; further filters are
-- applied row by row.
-- name: asset_list
SELECT {{asset_columns}} FROM asset a
WHERE a.shop_id = %lld AND a.deleted_at IS NULL AND a.id < %lld:before AND a.id > 0
ORDER BY a.id DESC LIMIT %lld

-- name: asset_list_of_status
SELECT {{asset_columns}} FROM asset a
WHERE a.shop_id = %lld AND a.status = %s AND a.status > '' AND a.deleted_at IS NULL AND a.id < %lld:before
ORDER BY a.id DESC LIMIT %lld

-- name: asset_list_of_category
SELECT {{asset_columns}} FROM asset a
WHERE a.shop_id = %lld AND a.category_id = %lld?0 AND a.category_id > 0 AND a.deleted_at IS NULL AND a.id < %lld:before
    AND (%s:status IS NULL OR a.status = %s)
ORDER BY a.id DESC LIMIT %lld

-- name: asset_list_of_filename
SELECT {{asset_columns}} FROM asset a
WHERE a.shop_id = %lld AND a.filename = %s AND a.filename > '' AND a.deleted_at IS NULL AND a.id < %lld:before
    AND (%lld:category_id?0 IS NULL OR a.category_id = %lld?0) AND (%s:status IS NULL OR a.status = %s)
ORDER BY a.id DESC LIMIT %lld

-- name: asset_list_of_sha256
SELECT {{asset_columns}} FROM asset a
WHERE a.shop_id = %lld AND a.sha256 = %s AND a.sha256 > '' AND a.deleted_at IS NULL AND a.id < %lld:before
    AND (%s:filename IS NULL OR a.filename = %s) AND (%lld:category_id?0 IS NULL OR a.category_id = %lld?0)
    AND (%s:status IS NULL OR a.status = %s)
ORDER BY a.id DESC LIMIT %lld

-- The files whose names begin alike: of the first thousand those that fit the filters.
-- name: asset_list_of_prefix
SELECT {{asset_columns}} FROM (
    SELECT {{asset_columns}} FROM asset a
    WHERE a.shop_id = %lld AND a.filename >= %s:prefix AND a.filename < %s:prefix_end AND a.filename > ''
        AND a.deleted_at IS NULL
    ORDER BY a.filename, a.id LIMIT 1000
) a
WHERE (%s:status IS NULL OR a.status = %s) AND (%lld:category_id?0 IS NULL OR a.category_id = %lld?0)
ORDER BY a.filename, a.id LIMIT %lld

-- How many mappings and packs have each of some assets, up to a limit.
-- name: asset_uses
SELECT a.id,
    (SELECT count(*) FROM (SELECT 1 FROM mapping_file h CROSS JOIN mapping m
        WHERE h.asset_id = a.id AND m.id = h.mapping_id AND +m.deleted_at IS NULL LIMIT %lld) h_rows) AS mappings,
    (SELECT count(*) FROM (SELECT 1 FROM pack_file h WHERE h.asset_id = a.id LIMIT %lld) h_rows) AS packs
FROM asset a WHERE a.id {{in_given}}

-- Members that a request leaves out stay unchanged; a flag says whether the two that may be cleared are
-- given.
-- name: asset_change
UPDATE asset SET filename = COALESCE(%s:filename, filename), title = COALESCE(%s:title, title),
    filename_guessed = CASE WHEN %s:filename IS NULL THEN filename_guessed ELSE 0 END,
    title_guessed = CASE WHEN %s:title IS NULL THEN title_guessed ELSE 0 END,
    content_type = CASE WHEN %lld:set_content_type = 1 THEN %s:content_type ELSE content_type END,
    category_id = CASE WHEN %lld:set_category = 1 THEN %lld:category_id?0 ELSE category_id END,
    updated_at = {{later}}
WHERE id = %lld

-- Locks an asset that gets new bytes, and reads its shop, its size, whether it ever had bytes, its digest, its
-- version, the expected digest, its former version, and what is said of the next.
-- name: asset_before
SELECT a.shop_id, COALESCE(a.size, 0) AS size, CASE WHEN a.status = 'ready' OR EXISTS (
    SELECT 1 FROM job j WHERE j.asset_id = a.id AND j.id < %s:job_id) THEN 1 ELSE 0 END AS has_version,
        a.sha256, a.version,
    a.filename, a.filename_guessed, a.content_type, a.source_url,
    a.former_version, a.former_sha256, a.former_size, a.former_source_url, a.former_note, a.former_until,
    a.note, a.next_note, a.next_notify
FROM asset a
WHERE a.id = %lld AND +a.deleted_at IS NULL {{for_no_key_update}}

-- name: asset_ready
UPDATE asset SET status = 'ready', sha256 = %s, size = %lld,
    content_type = COALESCE(content_type, %s:content_type), source_url = %s,
    told_version = CASE WHEN %lld:tells = 1 THEN version + 1 ELSE told_version END,
    version = version + %lld:has_version, note = next_note, next_note = NULL, next_notify = 0,
    former_version = %lld?0, former_sha256 = %s, former_size = %lld?0, former_source_url = %s,
    former_note = %s, former_until = %lld?0,
    filename = CASE WHEN filename_guessed = 1 THEN COALESCE(%s:filename, filename) ELSE filename END,
    title = CASE WHEN filename_guessed = 1 AND title_guessed = 1 THEN COALESCE(%s:filename, title)
        ELSE title END,
    filename_guessed = 0, title_guessed = 0,
    updated_at = {{later}}
WHERE id = %lld

-- name: asset_failed
UPDATE asset SET status = 'failed', updated_at = {{later}} WHERE id = %lld AND status = 'pending'

-- What is said of the version whose bytes are awaited. It shows once they are there.
-- name: asset_next
UPDATE asset SET next_note = %s:note, next_notify = %lld:notify WHERE id = %lld

-- name: asset_retry
UPDATE asset SET status = 'pending', updated_at = {{later}} WHERE id = %lld AND status = 'failed'

-- name: asset_delete
UPDATE asset SET deleted_at = %lld:now, updated_at = %lld:now,
    former_version = NULL, former_sha256 = NULL, former_size = NULL, former_source_url = NULL,
    former_note = NULL, former_until = NULL
WHERE id = %lld

-- The former bytes and the present ones change places, unless the former are lost. Of the version that they replace
-- no more buyers are told.
-- name: asset_restore
UPDATE asset SET version = version + 1, told_version = version + 1, sha256 = former_sha256, size = former_size,
    source_url = former_source_url, note = former_note,
    former_version = version, former_sha256 = sha256, former_size = size, former_source_url = source_url,
    former_note = note, former_until = %lld, updated_at = {{later}}
WHERE id = %lld AND (SELECT b.missing_at FROM blob b WHERE b.sha256 = asset.former_sha256) IS NULL

-- name: asset_forget
UPDATE asset SET former_version = NULL, former_sha256 = NULL, former_size = NULL, former_source_url = NULL,
    former_note = NULL, former_until = NULL, updated_at = {{later}}
WHERE id = %lld

-- name: assets_to_forget
SELECT id FROM asset WHERE former_until <= %lld:now ORDER BY former_until LIMIT %lld

-- The resources that refer to an asset.
-- name: asset_mappings
SELECT h.mapping_id, m.title, m.storefront_product_id FROM mapping_file h CROSS JOIN mapping m
WHERE h.asset_id = %lld:id AND m.id = h.mapping_id AND +m.deleted_at IS NULL
ORDER BY h.mapping_id
LIMIT %lld

-- name: asset_packs
SELECT h.pack_id, (SELECT k.name FROM pack k WHERE k.id = h.pack_id) AS name, NULL AS product FROM pack_file h
WHERE h.asset_id = %lld:id ORDER BY h.pack_id LIMIT %lld

-- name: asset_orders
SELECT o.storefront_order_id
FROM mapping_file h {{following_orders}} AND h.asset_id = %lld:id
LIMIT %lld

-- name: asset_pinned_orders
SELECT o.storefront_order_id
FROM assignment_file h JOIN assignment a ON a.id = h.assignment_id
JOIN orders o ON o.id = a.order_id
WHERE h.asset_id = %lld:id
LIMIT %lld

-- Which of a JSON array's ids are assets of the shop; they can't be deleted until the transaction
-- ends.
-- name: asset_known
SELECT id FROM asset
WHERE +shop_id = %lld AND id {{in_given}}
    AND +deleted_at IS NULL
{{for_key_share}}
