-- name: staff_session_insert
INSERT INTO staff_session (id, user_name, created_at, expires_at)
    VALUES (%s:id, %s:user_name, %lld:now, %lld:expires_at)

-- name: staff_session_find
SELECT user_name, created_at, expires_at FROM staff_session WHERE id = %s AND expires_at > %lld:now

-- name: staff_session_prolong
UPDATE staff_session SET expires_at = %lld WHERE id = %s

-- name: staff_session_delete
DELETE FROM staff_session WHERE id = %s

-- name: staff_session_delete_of_user
DELETE FROM staff_session WHERE user_name = %s

-- A user's newest sessions stay. Each sign-in removes some expired sessions of all users.
-- name: staff_session_prune
-- dialect: sqlite3
DELETE FROM staff_session WHERE id IN (
    SELECT id FROM (SELECT id FROM staff_session WHERE user_name = %s
        ORDER BY created_at DESC LIMIT 1000 OFFSET %lld:kept)
    UNION ALL SELECT id FROM (SELECT id FROM staff_session WHERE expires_at < %lld:now ORDER BY expires_at
        LIMIT 10))

-- name: staff_session_prune
-- dialect: pgsql
DELETE FROM staff_session WHERE id = ANY (ARRAY(
    (SELECT id FROM staff_session WHERE user_name = %s ORDER BY created_at DESC LIMIT 1000 OFFSET %lld:kept)
    UNION ALL (SELECT id FROM staff_session WHERE expires_at < %lld:now ORDER BY expires_at LIMIT 10)))
