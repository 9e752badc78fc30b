-- name: api_key_insert
INSERT INTO api_key (id, shop_id, name, scope, secret_mac, secret_id, created_at, expires_at)
VALUES (%s:id, %lld:shop_id, %s:name, %s:scope, %s:secret_mac, %s:secret_id, %lld:created_at, %lld:expires_at?0)

-- part: api_key_columns
id, shop_id, name, scope, created_at, last_used_at, expires_at, revoked_at

-- name: api_key_list
SELECT {{api_key_columns}} FROM api_key WHERE shop_id = %lld ORDER BY created_at

-- name: api_key_count_live
SELECT count(*) FROM api_key
WHERE shop_id = %lld AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %lld:now)

-- Locks the shop's row where the database has row locks, so that simultaneous creations count the keys one
-- after the other.
-- name: api_key_lock_shop
SELECT status FROM shop WHERE id = %lld {{for_update}}

-- name: api_key_verify
SELECT k.secret_mac, k.shop_id, k.scope, k.name AS key_name, k.expires_at, k.revoked_at,
    s.name AS shop_name, s.domain, s.status, s.blocked_at, k.secret_id
FROM api_key k JOIN shop s ON s.id = k.shop_id
WHERE k.id = %s

-- name: api_key_revoke
UPDATE api_key SET revoked_at = %lld:now
WHERE id = %s AND (%lld:shop_id = 0 OR shop_id = %lld) AND revoked_at IS NULL

-- name: api_key_by_id
SELECT {{api_key_columns}} FROM api_key WHERE id = %s

-- name: api_key_touch
UPDATE api_key SET last_used_at = %lld
WHERE id = %s AND (last_used_at IS NULL OR last_used_at < %lld:last_used_at)

-- name: api_key_sign
UPDATE api_key SET secret_mac = %s, secret_id = %s WHERE id = %s AND secret_mac = %s:old_mac

-- name: epoch_read
SELECT n FROM epoch WHERE id = 1

-- name: epoch_bump
UPDATE epoch SET n = n + 1 WHERE id = 1
