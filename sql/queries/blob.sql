-- Locks an existing blob against the sweep, and waits if the sweep has locked it.
-- name: blob_store
INSERT INTO blob (sha256, size, crc32, object, created_at)
VALUES (%s:sha256, %lld:size, %lld:crc32, %s:object, %lld:now)
ON CONFLICT (sha256) DO UPDATE SET size = excluded.size, missing_at = NULL,
    object = CASE WHEN blob.missing_at IS NULL THEN blob.object ELSE excluded.object END
RETURNING object

-- The place of a blob whose file is gone.
-- name: blob_move
UPDATE blob SET object = %s, missing_at = NULL WHERE sha256 = %s

-- name: blob_place
SELECT object FROM blob WHERE sha256 = %s

-- name: blob_missed
UPDATE blob SET missing_at = %lld:now WHERE object = %s AND missing_at IS NULL

-- name: blob_found
UPDATE blob SET missing_at = NULL WHERE object = %s

-- name: blob_insert
INSERT INTO blob (sha256, size, crc32, created_at) VALUES (%s:sha256, %lld:size, %lld:crc32, %lld:now)
ON CONFLICT (sha256) DO NOTHING

-- name: blob_release
UPDATE blob SET released_at = %lld:now WHERE sha256 = %s

-- name: blob_released
SELECT sha256 FROM blob WHERE released_at <= %lld:before ORDER BY released_at LIMIT %lld

-- Locks a blob against new references, which wait. The next statement reads whether there are references.
-- name: blob_lock
SELECT object, missing_at FROM blob WHERE sha256 = %s {{for_update}}

-- name: blob_used
SELECT 1 WHERE EXISTS (SELECT 1 FROM asset WHERE sha256 = %s AND +deleted_at IS NULL)
    OR EXISTS (SELECT 1 FROM asset WHERE former_sha256 = %s:sha256)
    OR EXISTS (SELECT 1 FROM upload WHERE sha256 = %s AND {{is_open}})

-- name: blob_keep
UPDATE blob SET released_at = NULL WHERE sha256 = %s

-- name: blob_leave_assets
UPDATE asset SET sha256 = NULL, size = NULL WHERE sha256 = %s

-- name: blob_leave_uploads
UPDATE upload SET sha256 = NULL WHERE sha256 = %s

-- name: blob_delete
DELETE FROM blob WHERE sha256 = %s

-- name: blob_count
SELECT count(*) FROM blob

-- name: blobs_after
SELECT sha256, size, object, missing_at FROM blob WHERE sha256 > %s:after ORDER BY sha256 LIMIT %lld

-- name: blobs_newest
SELECT asset.sha256, asset.size, b.object, b.missing_at
FROM asset LEFT JOIN blob b ON b.sha256 = asset.sha256
ORDER BY asset.id DESC LIMIT %lld

-- A copy is complete: readers go to the other place from now on.
-- name: blob_into_object
UPDATE blob SET object = %s:object, missing_at = NULL WHERE sha256 = %s AND object IS NULL

-- name: blob_into_folder
UPDATE blob SET object = NULL, missing_at = NULL WHERE sha256 = %s:sha256 AND object = %s:object

-- The assets that have a blob.
-- name: blob_assets
SELECT id, shop_id, filename, source_url FROM asset
WHERE sha256 = %s AND +deleted_at IS NULL ORDER BY id LIMIT %lld

-- The orders that include an asset: by the files of a mapping, by its packs, or pinned.
-- part: given_orders
-- dialect: sqlite3
CROSS JOIN assignment a ON a.mapping_id = h.mapping_id AND a.content = 'live'
JOIN orders o ON o.id = a.order_id

-- part: given_orders
-- dialect: pgsql
CROSS JOIN LATERAL (
    SELECT order_id FROM assignment WHERE mapping_id = h.mapping_id AND content = 'live' OFFSET 0
) a
JOIN orders o ON o.id = a.order_id

-- name: asset_file_orders
SELECT o.storefront_order_id FROM mapping_file h {{given_orders}} WHERE h.asset_id = %lld:id LIMIT %lld

-- name: asset_pack_orders
SELECT o.storefront_order_id
FROM pack_file f JOIN mapping_pack h ON h.pack_id = f.pack_id {{given_orders}}
WHERE f.asset_id = %lld:id LIMIT %lld

-- The digests of a JSON array whose blobs are in objects, and may be read there.
-- name: blobs_in_objects
-- dialect: sqlite3
SELECT value FROM json_each(%s:ids)
WHERE (SELECT b.object FROM blob b WHERE b.sha256 = json_each.value AND b.missing_at IS NULL) IS NOT NULL

-- name: blobs_in_objects
-- dialect: pgsql
SELECT g.sha256 FROM (SELECT jsonb_array_elements_text(%s:ids::jsonb) COLLATE "C") g (sha256)
WHERE (SELECT b.object FROM blob b WHERE b.sha256 = g.sha256 AND b.missing_at IS NULL) IS NOT NULL

-- The digests of a JSON array that no blob has.
-- name: blobs_without_row
-- dialect: sqlite3
SELECT value FROM json_each(%s:ids)
WHERE (SELECT b.sha256 FROM blob b WHERE b.sha256 = json_each.value) IS NULL

-- name: blobs_without_row
-- dialect: pgsql
SELECT g.sha256 FROM (SELECT jsonb_array_elements_text(%s:ids::jsonb) COLLATE "C") g (sha256)
WHERE (SELECT b.sha256 FROM blob b WHERE b.sha256 = g.sha256) IS NULL
