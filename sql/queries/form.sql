-- name: form_insert
INSERT INTO form (id, expires_at) VALUES (%s, %lld) ON CONFLICT (id) DO NOTHING

-- Each form takes some old ones away.
-- name: form_prune
-- dialect: sqlite3
DELETE FROM form WHERE id IN (SELECT id FROM form WHERE expires_at < %lld ORDER BY expires_at LIMIT 10)

-- name: form_prune
-- dialect: pgsql
DELETE FROM form
WHERE id = ANY (ARRAY(SELECT id FROM form WHERE expires_at < %lld ORDER BY expires_at LIMIT 10))
