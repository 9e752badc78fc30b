-- name: idempotency_find
SELECT fingerprint, status, location, body FROM idempotency
WHERE shop_id = %lld AND key_hi = %lld AND key_lo = %lld AND created_at > %lld:kept_since

-- The new answer replaces an answer past its retention. An answer that is still kept makes the statement fail.
-- name: idempotency_insert
INSERT INTO idempotency (shop_id, key_hi, key_lo, fingerprint, status, location, body, created_at)
VALUES (%lld:shop_id, %lld:key_hi, %lld:key_lo, %s:fingerprint, %lld:status, %s:location, %s:body, %lld:now)
ON CONFLICT (shop_id, key_hi, key_lo) DO UPDATE SET
    fingerprint = excluded.fingerprint, status = excluded.status, location = excluded.location,
    body = excluded.body,
    created_at = CASE WHEN idempotency.created_at <= %lld:kept_since THEN excluded.created_at
        ELSE {{failure:idempotency.created_at}} END
