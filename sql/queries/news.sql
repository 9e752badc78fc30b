-- Emails that tell the buyers of files of new versions (mod_downloads/core/order/news.h).

-- name: news_fill_insert
INSERT INTO news_fill (job_id, asset_id, version, mapping_id, after_id)
VALUES (%s:job_id, %lld:asset_id, %lld:version, 0, 0)

-- name: news_fill_of_job
SELECT f.asset_id, f.version, f.mapping_id, f.after_id,
    CASE WHEN a.deleted_at IS NULL AND a.told_version = f.version THEN 0 ELSE 1 END AS is_over
FROM news_fill f JOIN asset a ON a.id = f.asset_id WHERE f.job_id = %s

-- name: news_fill_advance
UPDATE news_fill SET mapping_id = %lld, after_id = %lld WHERE job_id = %s

-- Some purchases whose own content has a file, and some that follow a mapping; after_id goes on behind a row.
-- name: news_pinned
SELECT w_rows.assignment_id AS after_id, a.order_id, a.created_at
FROM (SELECT assignment_id FROM assignment_file WHERE asset_id = %lld AND assignment_id > %lld:after
    ORDER BY assignment_id LIMIT %lld) w_rows
CROSS JOIN assignment a
WHERE a.id = w_rows.assignment_id
ORDER BY w_rows.assignment_id

-- name: news_live
SELECT order_id AS after_id, order_id, created_at FROM assignment
WHERE mapping_id = %lld AND content = 'live' AND order_id > %lld:after
ORDER BY order_id LIMIT %lld

-- The next mapping that has a file, itself or in a pack.
-- name: news_mapping
SELECT min(w_rows.mapping_id) AS mapping_id FROM (
    SELECT (SELECT h.mapping_id FROM mapping_file h WHERE h.asset_id = %lld AND h.mapping_id > %lld:after
        ORDER BY h.mapping_id LIMIT 1) AS mapping_id
    UNION ALL
    SELECT (SELECT m.mapping_id FROM mapping_pack m WHERE m.pack_id = k.pack_id AND m.mapping_id > %lld:after
        ORDER BY m.mapping_id LIMIT 1)
    FROM pack_file k WHERE k.asset_id = %lld) w_rows

-- The ASCII letters of an address in lower case: others are its owner's own, as elsewhere (strcasecmp).
-- part: address_folded
-- dialect: sqlite3
lower({{recipient:o}})

-- part: address_folded
-- dialect: pgsql
lower({{recipient:o}} COLLATE "C")

-- An email about an earlier version that has not left tells of this one later.
-- name: news_items_insert
INSERT INTO news_item (order_id, asset_id, shop_id, address, version)
SELECT o.id, %lld:asset_id, o.shop_id, {{address_folded}}, %lld:version FROM orders o
WHERE o.id {{in_given}} AND o.access_status = 'active' AND o.undeclared = 0 AND {{recipient:o}} IS NOT NULL
ON CONFLICT (order_id, asset_id) DO UPDATE SET address = excluded.address, version = excluded.version, job_id = NULL

-- An address that has had an email within a day waits until the day is over.
-- name: news_addresses_insert
INSERT INTO news_address (shop_id, address, due_at)
SELECT DISTINCT i.shop_id, i.address, {{now}} FROM news_item i
WHERE i.order_id {{in_given}} AND +i.asset_id = %lld AND COALESCE(i.job_id, '') = ''
ORDER BY i.address
ON CONFLICT (shop_id, address) DO UPDATE SET
    due_at = COALESCE(news_address.due_at, CASE WHEN news_address.sent_at > excluded.due_at - 86400000000
        THEN news_address.sent_at + 86400000000 ELSE excluded.due_at END)

-- name: news_shop_insert
INSERT INTO news_shop (id, due_at) VALUES (%lld:shop_id, {{now}})
ON CONFLICT (id) DO UPDATE SET due_at = excluded.due_at WHERE news_shop.due_at > excluded.due_at

-- name: news_waits
SELECT 1 AS waits FROM news_shop WHERE due_at <= {{now}} LIMIT 1

-- The shop whose turn it is. A second node waits here, and then sees what the first has queued.
-- name: news_shop_next
SELECT n.id, (SELECT s.blocked_at FROM shop s WHERE s.id = n.id) AS blocked_at FROM news_shop n
WHERE n.due_at <= {{now}} ORDER BY n.due_at LIMIT 1 {{for_update}}

-- How many emails the shop has had within a day, up to a limit, and since when.
-- name: news_sent
SELECT count(*) AS sent, COALESCE(min(sent_at), 0) AS oldest
FROM (SELECT sent_at FROM news_address WHERE shop_id = %lld AND sent_at > {{now}} - 86400000000
    ORDER BY sent_at LIMIT %lld) w_rows

-- name: news_addresses_due
SELECT address FROM news_address WHERE shop_id = %lld AND due_at <= {{now}} ORDER BY due_at LIMIT %lld

-- name: news_items_waiting
SELECT order_id FROM news_item WHERE shop_id = %lld AND address = %s AND job_id IS NULL
ORDER BY order_id DESC LIMIT %lld

-- name: news_items_bind
UPDATE news_item SET job_id = %s
WHERE order_id {{in_given}} AND +shop_id = %lld AND address = %s AND COALESCE(job_id, '') = ''

-- name: news_items_drop
DELETE FROM news_item WHERE shop_id = %lld AND address = %s AND job_id IS NULL

-- name: news_address_sent
UPDATE news_address SET sent_at = {{now}},
    due_at = CASE WHEN EXISTS (SELECT 1 FROM news_item i
        WHERE i.shop_id = %lld AND i.address = %s AND i.job_id IS NULL) THEN {{now}} + 86400000000 END
WHERE shop_id = %lld AND address = %s

-- name: news_address_over
UPDATE news_address SET due_at = NULL, sent_at = COALESCE(sent_at, 0) WHERE shop_id = %lld AND address = %s

-- name: news_addresses_forget
DELETE FROM news_address WHERE shop_id = %lld AND sent_at <= {{now}} - 86400000000 AND due_at IS NULL

-- name: news_sent_forget
UPDATE news_address SET sent_at = NULL WHERE shop_id = %lld AND sent_at <= {{now}} - 86400000000

-- When a shop's next email is due, and when its oldest left.
-- name: news_shop_after
SELECT COALESCE((SELECT due_at FROM news_address WHERE shop_id = %lld AND due_at IS NOT NULL
        ORDER BY due_at LIMIT 1), 0) AS due_at,
    COALESCE((SELECT sent_at FROM news_address WHERE shop_id = %lld AND sent_at IS NOT NULL
        ORDER BY sent_at LIMIT 1), 0) AS sent_at

-- A shop with more to send goes behind the others.
-- name: news_shop_due
UPDATE news_shop SET due_at = CASE WHEN %lld:due_at > {{now}} THEN %lld:due_at ELSE {{now}} END WHERE id = %lld:shop_id

-- name: news_shop_delete
DELETE FROM news_shop WHERE id = %lld

-- What an email tells: not of what a later version has replaced, whose own email comes.
-- name: news_items_of_job
-- dialect: sqlite3
SELECT i.order_id, i.address, a.id AS asset_id, a.title, a.filename, a.version, a.note
FROM news_item i CROSS JOIN asset a
WHERE i.job_id = %s AND a.id = i.asset_id AND +a.deleted_at IS NULL AND +a.status = 'ready'
    AND +a.told_version = i.version
ORDER BY i.order_id DESC, i.asset_id LIMIT %lld

-- name: news_items_of_job
-- dialect: pgsql
SELECT i.order_id, i.address, a.id AS asset_id, a.title, a.filename, a.version, a.note
FROM news_item i CROSS JOIN LATERAL (SELECT * FROM asset WHERE id = i.asset_id OFFSET 0) a
WHERE i.job_id = %s AND a.deleted_at IS NULL AND a.status = 'ready' AND a.told_version = i.version
ORDER BY i.order_id + 0 DESC, i.asset_id LIMIT %lld

-- name: news_items_delete
DELETE FROM news_item WHERE job_id = %s

-- name: unsubscribed_find
SELECT 1 AS found FROM unsubscribed WHERE shop_id = %lld AND address_mac = %s

-- name: unsubscribed_insert
INSERT INTO unsubscribed (shop_id, address_mac, created_at) VALUES (%lld:shop_id, %s:address_mac, {{now}})
ON CONFLICT (shop_id, address_mac) DO NOTHING

-- name: unsubscribed_shop
SELECT s.name, s.domain, COALESCE(s.reply_to, s.email) AS shop_email, s.accent, s.languages, s.logo_sha256,
    s.logo_width, s.logo_height,
    (SELECT 1 FROM unsubscribed u WHERE u.shop_id = s.id AND u.address_mac = %s) AS is_there
FROM shop s WHERE s.id = %lld
