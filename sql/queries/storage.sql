-- The identity of the storage folder or of the bucket.
-- name: storage_identity
SELECT identity FROM storage WHERE place = %s:place

-- name: storage_adopt
INSERT INTO storage (place, identity) VALUES (%s:place, %s:identity) ON CONFLICT (place) DO NOTHING

-- Whether the database knows a blob that should be there. Without a folder each check of readiness reads the first.
-- name: storage_knows_file
SELECT 1 FROM blob WHERE object IS NULL AND size >= 0 ORDER BY size LIMIT 1

-- name: storage_knows_object
SELECT 1 FROM blob WHERE object > '' LIMIT 1

-- name: storage_status
SELECT count(*) - count(object) AS files,
    CAST(COALESCE(sum(CASE WHEN object IS NULL THEN size END), 0) AS BIGINT) AS file_bytes,
    count(object) AS objects,
    CAST(COALESCE(sum(CASE WHEN object IS NOT NULL THEN size END), 0) AS BIGINT) AS object_bytes,
    count(missing_at) AS missing,
    (SELECT count(*) FROM stray_object) AS strays,
    (SELECT count(*) FROM storage_hold WHERE lapses_at IS NULL OR lapses_at > {{now}}) AS holds
FROM blob

-- name: storage_hold
INSERT INTO storage_hold (id, user_name, held_at, lapses_at)
VALUES (%s:id, %s:user_name, %lld:held_at, {{now}} + %lld:lease?0)

-- name: storage_held
SELECT id, user_name, held_at FROM storage_hold WHERE lapses_at IS NULL OR lapses_at > {{now}}
ORDER BY held_at LIMIT 1

-- name: storage_hold_renew
UPDATE storage_hold SET lapses_at = {{now}} + %lld:lease WHERE id = %s AND lapses_at > {{now}}

-- name: storage_holds_lapsed
DELETE FROM storage_hold WHERE lapses_at <= {{now}}

-- name: storage_release
DELETE FROM storage_hold WHERE id = %s

-- name: storage_release_all
DELETE FROM storage_hold
