-- Times are by the database's clock: a node with a wrong one must not have objects removed too early.

-- name: stray_begin
INSERT INTO stray_object (key, owner, due_at) VALUES (%s:key, %s:owner, {{now}} + %lld:rest)

-- name: stray_leave
INSERT INTO stray_object (key, due_at) VALUES (%s:key, {{now}} + %lld:rest)
ON CONFLICT (key) DO UPDATE SET due_at = excluded.due_at

-- name: stray_adopt
DELETE FROM stray_object WHERE key = %s AND removed_at IS NULL

-- Whether an object is being removed.
-- name: stray_removed
SELECT 1 FROM stray_object WHERE key = %s

-- name: stray_drop
UPDATE stray_object SET owner = NULL, due_at = {{now}} WHERE key = %s

-- Whether the writer may still come, or a blob has got the object after all.
-- part: stray_is_held
EXISTS (SELECT 1 FROM job j WHERE j.id = stray_object.owner AND j.finished_at IS NULL)
    OR EXISTS (SELECT 1 FROM upload WHERE upload.id = stray_object.owner AND {{is_open}})
    OR EXISTS (SELECT 1 FROM blob b WHERE b.object = stray_object.key)

-- Postpones due keys.  Those that may be removed get removed_at.
-- part: stray_taken
UPDATE stray_object SET due_at = %lld:again,
    removed_at = CASE WHEN {{stray_is_held}} THEN removed_at ELSE COALESCE(removed_at, %lld:now) END

-- name: stray_take
-- dialect: sqlite3
{{stray_taken}}
WHERE key IN (SELECT key FROM stray_object WHERE due_at <= %lld:now ORDER BY due_at LIMIT %lld)
RETURNING key, owner, removed_at

-- name: stray_take
-- dialect: pgsql
{{stray_taken}}
WHERE key = ANY (ARRAY(SELECT key FROM stray_object WHERE due_at <= %lld:now ORDER BY due_at
    LIMIT %lld FOR UPDATE SKIP LOCKED))
RETURNING key, owner, removed_at

-- name: stray_postpone
UPDATE stray_object SET due_at = {{now}} + %lld:rest WHERE key = %s

-- name: stray_again
UPDATE stray_object SET due_at = %lld WHERE key = %s

-- name: stray_end
DELETE FROM stray_object WHERE key = %s

-- The keys of a JSON array that neither a blob has nor this table.
-- name: objects_unknown
-- dialect: sqlite3
SELECT value FROM json_each(%s:keys)
WHERE (SELECT b.object FROM blob b WHERE b.object = json_each.value LIMIT 1) IS NULL
    AND (SELECT s.key FROM stray_object s WHERE s.key = json_each.value) IS NULL

-- name: objects_unknown
-- dialect: pgsql
SELECT g.key FROM (SELECT jsonb_array_elements_text(%s:keys::jsonb) COLLATE "C") g (key)
WHERE (SELECT b.object FROM blob b WHERE b.object = g.key LIMIT 1) IS NULL
    AND (SELECT s.key FROM stray_object s WHERE s.key = g.key) IS NULL
