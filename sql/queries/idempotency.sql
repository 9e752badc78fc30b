-- name: idempotency_find
SELECT fingerprint, status, location, body FROM idempotency
WHERE shop_id = %lld AND key_hi = %lld AND key_lo = %lld AND created_at > %lld

-- An answer past its retention is replaced by the new one.  One that is still kept makes the statement
-- fail, and with it the transaction: PostgreSQL refuses the division, without a line in its log that has
-- the row, and for SQLite it is NULL, which created_at must not be.
-- name: idempotency_insert
INSERT INTO idempotency (shop_id, key_hi, key_lo, fingerprint, status, location, body, created_at)
VALUES (%lld, %lld, %lld, %s, %lld, %s, %s, %lld)
ON CONFLICT (shop_id, key_hi, key_lo) DO UPDATE SET
    fingerprint = excluded.fingerprint, status = excluded.status, location = excluded.location,
    body = excluded.body,
    created_at = CASE WHEN idempotency.created_at <= %lld THEN excluded.created_at
        ELSE idempotency.created_at / 0 END
