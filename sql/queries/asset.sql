-- name: asset_insert
INSERT INTO asset (shop_id, status, filename, title, content_type, source_url, version,
    created_at, updated_at)
VALUES (%lld, 'pending', %s, %s, %s, %s, 1, %lld, %lld)
RETURNING id

-- name: asset_ready
UPDATE asset SET status = 'ready', sha256 = %s, content_type = COALESCE(content_type, %s),
    updated_at = %lld
WHERE id = %lld

-- name: asset_failed
UPDATE asset SET status = 'failed', updated_at = %lld WHERE id = %lld AND status = 'pending'

-- name: asset_retry
UPDATE asset SET status = 'pending', updated_at = %lld WHERE id = %lld AND status = 'failed'

-- Which of a JSON array's ids are assets of the shop; they can't be deleted until the transaction
-- ends.
-- name: asset_known
-- dialect: sqlite3
SELECT id FROM asset
WHERE shop_id = %lld AND id IN (SELECT CAST(value AS INTEGER) FROM json_each(%s))
    AND deleted_at IS NULL

-- name: asset_known
-- dialect: pgsql
SELECT id FROM asset
WHERE shop_id = %lld
    AND id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(%s::jsonb)))
    AND deleted_at IS NULL
FOR KEY SHARE

-- name: blob_insert
INSERT INTO blob (sha256, size, crc32, created_at) VALUES (%s, %lld, %lld, %lld)
ON CONFLICT (sha256) DO NOTHING
