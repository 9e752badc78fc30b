-- name: form_insert
INSERT INTO form (id, expires_at) VALUES (%s:id, %lld:expires_at) ON CONFLICT (id) DO NOTHING

-- Each form removes some old forms.
-- name: form_prune
-- dialect: sqlite3
DELETE FROM form WHERE id IN (SELECT id FROM form WHERE expires_at < %lld:now ORDER BY expires_at LIMIT 10)

-- name: form_prune
-- dialect: pgsql
DELETE FROM form
WHERE id = ANY (ARRAY(SELECT id FROM form WHERE expires_at < %lld:now ORDER BY expires_at LIMIT 10))
