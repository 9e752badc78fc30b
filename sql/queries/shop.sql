-- part: shop_columns
id, name, domain, email, status, created_at, sender_name, reply_to, mail_delay, withdrawal_url, hold_at, declaration, help,
storefront_url, blocked_at, block_reason, accent, email_texts, logo_sha256, logo_width,
logo_height, logo_fault, download_limit, access_days,
languages,
(SELECT i.job_id FROM logo_image i WHERE i.shop_id = shop.id) AS logo_job_id,
(SELECT a.asked_at FROM staff_address a WHERE a.shop_id = shop.id AND a.address = shop.email) AS asked_at,
(SELECT a.confirmed_at FROM staff_address a WHERE a.shop_id = shop.id
    AND a.address = shop.email) AS confirmed_at

-- The next number of an order by hand: 20 digits, the first a 9.
-- name: shop_next_order
UPDATE shop SET orders_by_hand = orders_by_hand + 1 WHERE id = %lld RETURNING orders_by_hand

-- name: shop_insert
INSERT INTO shop (name, domain, email, status, created_at, updated_at)
VALUES (%s:name, %s:domain, %s:email, 'pending', %lld:now, %lld:now)
ON CONFLICT (domain) DO NOTHING
RETURNING {{shop_columns}}

-- name: shop_by_id
SELECT {{shop_columns}} FROM shop WHERE id = %lld

-- Serializes changes of a shop that must see each other.
-- name: shop_lock
SELECT id FROM shop WHERE id = %lld {{for_no_key_update}}

-- name: shop_list
SELECT {{shop_columns}} FROM shop ORDER BY id

-- name: shop_set_status
UPDATE shop SET status = %s, updated_at = %lld:now WHERE id = %lld AND status <> %s:status

-- A shop that is blocked again keeps the time of its first block.
-- name: shop_block
UPDATE shop SET blocked_at = COALESCE(blocked_at, %lld:now), block_reason = %s WHERE id = %lld

-- name: shop_unblock
UPDATE shop SET blocked_at = NULL, block_reason = NULL WHERE id = %lld

-- While a shop is blocked nothing is sent to its webhook endpoints, so that time does not count as failing.
-- name: shop_unblock_webhooks
UPDATE webhook_endpoint SET failing_since = failing_since + COALESCE((
        SELECT %lld:now - CASE WHEN s.blocked_at > webhook_endpoint.failing_since THEN s.blocked_at
            ELSE webhook_endpoint.failing_since END
        FROM shop s WHERE s.id = webhook_endpoint.shop_id AND s.blocked_at IS NOT NULL), 0)
WHERE shop_id = %lld AND deleted_at IS NULL AND failing_since IS NOT NULL

-- name: shops_blocked
SELECT id FROM shop WHERE blocked_at IS NOT NULL

-- name: shop_set
UPDATE shop SET name = %s, email = %s, sender_name = %s, reply_to = %s, accent = %s, email_texts = %s,
    mail_delay = %lld, hold_at = %s, declaration = %lld, help = %s, download_limit = %lld?-1, access_days = %lld?-1,
    languages = %s, withdrawal_url = %s, updated_at = %lld:now
WHERE id = %lld

-- name: shop_store
UPDATE shop SET files_stored = files_stored + %lld:files, bytes_stored = bytes_stored + %lld:bytes,
    bytes_former = bytes_former + %lld:former_bytes
WHERE id = %lld

-- name: shop_bytes
SELECT s.files_stored AS files, s.bytes_stored AS bytes, s.bytes_former AS former_bytes, {{bytes_taken}} AS taken
FROM shop s WHERE s.id = %lld
