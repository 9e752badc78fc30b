-- The storage folder's identity, and whether the database knows a file that should be in it.
-- name: storage_identity
SELECT (SELECT identity FROM storage WHERE one = 1), (SELECT sha256 FROM blob WHERE sha256 > '' LIMIT 1)

-- name: storage_adopt
INSERT INTO storage (one, identity) VALUES (1, %s) ON CONFLICT (one) DO NOTHING
