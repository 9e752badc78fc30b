-- name: secret_note
INSERT INTO secret (id, since) VALUES (%s:id, %lld:now) ON CONFLICT (id) DO NOTHING

-- name: secret_since
SELECT since FROM secret WHERE id = %s

-- name: secrets
SELECT id FROM secret

-- Live keys by the secret that has signed them.
-- name: api_keys_by_secret
SELECT secret_id, count(*) AS keys FROM api_key
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %lld:now) GROUP BY secret_id

-- name: order_exists
SELECT 1 FROM orders LIMIT 1

-- Live keys that were signed by another secret than the given one.
-- name: api_keys_unsigned
SELECT count(*) FROM api_key
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %lld:now) AND secret_id <> %s:id

-- name: api_keys_revoke_unsigned
UPDATE api_key SET revoked_at = %lld:now
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %lld:now) AND secret_id <> %s:secret_id

-- Orders that had an email within a given time.
-- name: pages_sent
SELECT count(DISTINCT order_id) FROM email WHERE sent_at >= %lld:since AND sent_at < %lld:until

-- name: storefront_tokens
SELECT id, storefront_url, storefront_token FROM shop WHERE storefront_token IS NOT NULL ORDER BY id

-- name: idempotency_after
SELECT shop_id, key_hi, key_lo, body FROM idempotency
WHERE (shop_id, key_hi, key_lo) > (%lld:shop_id, %lld:hi, %lld:lo)
ORDER BY shop_id, key_hi, key_lo LIMIT %lld

-- name: idempotency_renew
UPDATE idempotency SET body = %s WHERE shop_id = %lld AND key_hi = %lld AND key_lo = %lld AND body = %s:old_body

-- name: data_key
SELECT sealed FROM data_key WHERE id = 1

-- name: data_key_insert
INSERT INTO data_key (id, sealed) VALUES (1, %s:sealed) ON CONFLICT (id) DO NOTHING

-- name: data_key_set
UPDATE data_key SET sealed = %s WHERE id = 1
