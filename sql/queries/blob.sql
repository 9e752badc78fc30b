-- Locks a blob that is there against the sweep, and waits if the sweep has locked it.
-- name: blob_store
INSERT INTO blob (sha256, size, crc32, created_at) VALUES (%s, %lld, %lld, %lld)
ON CONFLICT (sha256) DO UPDATE SET size = excluded.size
RETURNING size

-- name: blob_insert
INSERT INTO blob (sha256, size, crc32, created_at) VALUES (%s, %lld, %lld, %lld)
ON CONFLICT (sha256) DO NOTHING

-- name: blob_release
UPDATE blob SET released_at = %lld WHERE sha256 = %s

-- name: blob_released
SELECT sha256 FROM blob WHERE released_at <= %lld ORDER BY released_at LIMIT %lld

-- Locks a blob against new references, which wait.  The next statement reads whether there are any.
-- name: blob_lock
SELECT sha256 FROM blob WHERE sha256 = %s {{for_update}}

-- name: blob_used
SELECT 1 WHERE EXISTS (SELECT 1 FROM asset WHERE sha256 = %s AND +deleted_at IS NULL)
    OR EXISTS (SELECT 1 FROM upload WHERE sha256 = %s AND {{is_open}})

-- name: blob_keep
UPDATE blob SET released_at = NULL WHERE sha256 = %s

-- name: blob_leave_assets
UPDATE asset SET sha256 = NULL, size = NULL WHERE sha256 = %s

-- name: blob_leave_uploads
UPDATE upload SET sha256 = NULL WHERE sha256 = %s

-- name: blob_delete
DELETE FROM blob WHERE sha256 = %s

-- Of the digests of a JSON array those that no blob has.
-- name: blobs_without_row
-- dialect: sqlite3
SELECT value FROM json_each(%s)
WHERE (SELECT b.sha256 FROM blob b WHERE b.sha256 = json_each.value) IS NULL

-- name: blobs_without_row
-- dialect: pgsql
SELECT g.sha256 FROM (SELECT jsonb_array_elements_text(%s::jsonb) COLLATE "C") g (sha256)
WHERE (SELECT b.sha256 FROM blob b WHERE b.sha256 = g.sha256) IS NULL
