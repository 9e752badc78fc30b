-- The storage folder's identity, and whether the database knows a file that should be in it.
-- name: storage_identity
SELECT (SELECT identity FROM storage WHERE one = 1) AS identity,
    (SELECT sha256 FROM blob WHERE sha256 > '' LIMIT 1) AS sha256

-- name: storage_adopt
INSERT INTO storage (one, identity) VALUES (1, %s:identity) ON CONFLICT (one) DO NOTHING

-- name: storage_hold
INSERT INTO storage_hold (id, user_name, held_at) VALUES (%s:id, %s:user_name, %lld:held_at)

-- name: storage_held
SELECT id, user_name, held_at FROM storage_hold ORDER BY held_at LIMIT 1

-- name: storage_release
DELETE FROM storage_hold WHERE id = %s

-- name: storage_release_all
DELETE FROM storage_hold
