-- Rows for every table, in SQL that both databases understand: one for each row of seed (i), which is
-- 1 and up.  A few are popular: mappings 1 and 2 serve most orders, asset, pack, link and tag 1 are in
-- every mapping, customer 1 has many orders, and shop 1 has nearly everything.

INSERT INTO shop (name, domain, email, status, created_at, updated_at)
VALUES ('One', 'one.test', 'one@one.test', 'approved', 1, 1),
    ('Two', 'two.test', 'two@two.test', 'approved', 1, 1);

INSERT INTO logo (shop_id, sha256, png, created_at)
SELECT 1 + i % 2, 'sha' || i, 'png', i FROM seed WHERE i <= 20 ORDER BY seed.i;

INSERT INTO logo_image (shop_id, job_id, image) SELECT i, 'job' || i, 'image' FROM seed WHERE i <= 2 ORDER BY seed.i;

INSERT INTO storage (place, identity) VALUES ('folder', 'storage');

INSERT INTO maintenance (id, since) VALUES (1, 1);
INSERT INTO storage_hold (id, user_name, held_at) VALUES ('hold', 'root', 1);
INSERT INTO stray_object (key, owner, due_at) VALUES ('obj_1', 'job_1', 1);

INSERT INTO secret (id, since) SELECT 'secret' || i, i FROM seed;

INSERT INTO data_key (id, sealed) VALUES (1, 'v1.sealed');

INSERT INTO api_key (id, shop_id, name, scope, secret_mac, secret_id, created_at)
SELECT 'key' || i, 1 + i % 2, 'Key', 'full', 'mac', 'secret', i FROM seed WHERE i <= 100 ORDER BY seed.i;

INSERT INTO member (user_name, shop_id, role, created_at)
SELECT 'user' || i, 1 + i % 2, 'staff', i FROM seed WHERE i <= 100 ORDER BY seed.i;

INSERT INTO notice (shop_id, user_name, kind, choice, waiting, due_at)
SELECT 1 + i % 2, 'user' || i, 'held', 'now', 1, i FROM seed ORDER BY seed.i;

INSERT INTO form (id, expires_at) SELECT 'form' || i, i FROM seed ORDER BY seed.i;

INSERT INTO staff_session (id, user_name, created_at, expires_at)
SELECT 'session' || i, 'user' || i % 100, i, i FROM seed ORDER BY seed.i;

INSERT INTO idempotency (shop_id, key_hi, key_lo, fingerprint, status, body, created_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, i, i, 'print', 201, '{}', i FROM seed ORDER BY seed.i;

INSERT INTO blob (sha256, size, crc32, created_at, released_at)
SELECT 'sha' || i, 1000, 1, i, CASE WHEN i % 1000 = 0 THEN i END FROM seed ORDER BY seed.i;

INSERT INTO category (shop_id, name, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'Category', i, i FROM seed ORDER BY seed.i;

INSERT INTO asset (shop_id, status, filename, title, sha256, size, version, created_at, updated_at,
    category_id, deleted_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, CASE WHEN i % 10 = 3 THEN 'pending' ELSE 'ready' END,
    'file' || i, 'File', 'sha' || i, 1000, 1, i, i, CASE WHEN i % 2 = 0 THEN i END,
    CASE WHEN i % 100 = 7 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO pack (shop_id, name, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'Pack', i, i FROM seed ORDER BY seed.i;

INSERT INTO pack_file (pack_id, asset_id, position)
SELECT i, 1, 0 FROM seed UNION ALL SELECT i, i, 1 FROM seed WHERE i > 1;

INSERT INTO link (shop_id, title, url, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'Link', 'https://a.test/', i, i FROM seed ORDER BY seed.i;

INSERT INTO license_key_tag (shop_id, name, available, assigned, low_stock_threshold, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'Tag', 1, 1, CASE WHEN i % 2 = 0 THEN i % 4 END, i, i FROM seed
ORDER BY seed.i;

-- One in four is deleted, mapping 2 among them.
INSERT INTO mapping (shop_id, storefront_product_id, variants_hash, download_type, is_active, content,
    created_at, updated_at, deleted_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'gid://shopfront/Product/' || i,
    CASE WHEN i % 4 = 3 THEN 'hash' ELSE '' END, 'FILES', CASE WHEN i % 4 = 2 THEN 0 ELSE 1 END,
    CASE WHEN i % 4 = 2 THEN 'pinned' ELSE 'live' END, i, i, CASE WHEN i % 4 = 2 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO mapping_variant (mapping_id, storefront_variant_id, position)
SELECT i, 'gid://shopfront/ProductVariant/' || i, 0 FROM seed WHERE i % 4 = 3 OR i = 1;

INSERT INTO mapping_file (mapping_id, asset_id, position)
SELECT i, 1, 0 FROM seed UNION ALL SELECT i, i, 1 FROM seed WHERE i > 1;

INSERT INTO mapping_pack (mapping_id, pack_id, position)
SELECT i, 1, 0 FROM seed UNION ALL SELECT i, i, 1 FROM seed WHERE i > 1;

INSERT INTO mapping_link (mapping_id, link_id, position)
SELECT i, 1, 0 FROM seed UNION ALL SELECT i, i, 1 FROM seed WHERE i > 1;

INSERT INTO mapping_license_key_tag (mapping_id, tag_id, position)
SELECT i, i, 0 FROM seed;

INSERT INTO customer (shop_id, storefront_customer_id, email, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'c' || i, 'c' || i || '@buyer.test', i, i
FROM seed ORDER BY seed.i;

-- Customers who were merged, some of whom have orders still.
UPDATE customer SET merged_into = id - 1, merging = CASE WHEN id % 100 = 37 THEN 1 ELSE 0 END WHERE id % 10 = 7;

INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, client_ip, access_status,
    fraud_decision, likely_typo, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'o' || i, CASE WHEN i % 10 = 0 THEN 1 ELSE i END,
    'page' || i, CASE WHEN i % 10 = 0 THEN '10.0.0.1' ELSE 'ip' || i END,
    CASE WHEN i % 100 = 5 THEN 'revoked' ELSE 'active' END, 'passed',
    CASE WHEN i % 4 = 1 THEN 'c' || i || '@gmial.com' END, i, i
FROM seed ORDER BY seed.i;

INSERT INTO help_request (shop_id, order_id, finding, state, asked_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, i, 'access_expired',
    CASE WHEN i % 10 = 0 THEN 'asked' ELSE 'granted' END, i
FROM seed ORDER BY seed.i;

-- Mapping 1 serves a half, mapping 2, which was deleted, a quarter, each other mapping its own order.
INSERT INTO assignment (shop_id, order_id, storefront_product_id, storefront_variant_id, quantity, mapping_id,
    content, status, created_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, i, 'gid://shopfront/Product/' || i, '', 1,
    CASE WHEN i % 4 = 1 THEN 2 WHEN i % 4 = 3 THEN i ELSE 1 END,
    CASE WHEN i % 4 = 1 THEN 'pinned' ELSE 'live' END, 'active', i
FROM seed ORDER BY seed.i;

INSERT INTO assignment_file (assignment_id, asset_id, position)
SELECT i, 2, 0 FROM seed WHERE i % 4 = 1;

INSERT INTO assignment_link (assignment_id, link_id, position)
SELECT i, 2, 0 FROM seed WHERE i % 4 = 1;

INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra)
SELECT i, 1, 1, 0 FROM seed;

INSERT INTO license_key (tag_id, license_key, assignment_id, assigned_at, created_at)
SELECT 1, 'key' || i, CASE WHEN i % 2 = 0 THEN i END,
    CASE WHEN i % 2 = 0 THEN i END, i
FROM seed ORDER BY seed.i;

INSERT INTO license_claim (assignment_id, tag_id, wanted, assigned, shop_id)
SELECT i, 1, 1, CASE WHEN i % 100 = 0 THEN 0 ELSE 1 END, CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END FROM seed;

-- Each order and customer has a word of its own, and all have one.
INSERT INTO search_word (shop_id, kind, word, ref)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 1, 'o' || i, i FROM seed
UNION ALL SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 2, 'c' || i || '@buyer.test', i FROM seed
UNION ALL SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 2, 'buyer.test', i FROM seed;

INSERT INTO email (shop_id, order_id, recipient, message_id, status, attempts, created_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, i, 'c' || i || '@buyer.test', 'message' || i,
    CASE WHEN i % 10 = 0 THEN 'queued' WHEN i % 10 = 1 THEN 'failed' ELSE 'sent' END, 1, i
FROM seed ORDER BY seed.i;

INSERT INTO upload (id, shop_id, status, filename, title, sha256, asset_id, created_at, updated_at, expires_at)
SELECT 'upl_' || (1000000000 + i), CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END,
    CASE WHEN i % 100 = 0 THEN 'open' ELSE 'completed' END, 'file' || i, 'File', 'sha' || i, i, i, i, i
FROM seed ORDER BY seed.i;

-- One in ten waits for an attempt, and one in a thousand runs.
INSERT INTO job (id, shop_id, type, lane, asset_id, upload_id, email_id, order_id, status, attempts,
    max_attempts, due_at, lease_owner, lease_token, bytes_received, created_at, finished_at)
SELECT 'job_' || (1000000000 + i), CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END,
    CASE i % 3 WHEN 0 THEN 'email' WHEN 1 THEN 'asset_import' ELSE 'storefront_lookup' END,
    CASE i % 3 WHEN 0 THEN 'mail' WHEN 1 THEN 'small' ELSE 'lookup' END,
    CASE WHEN i % 3 = 1 THEN i END, CASE WHEN i % 6 = 1 THEN 'upl_' || (1000000000 + i) END, CASE WHEN i % 3 = 0 THEN i END,
    CASE WHEN i % 3 = 2 THEN i END,
    CASE WHEN i % 1000 = 1 THEN 'running' WHEN i % 10 = 0 THEN 'queued' WHEN i % 10 = 2 THEN 'failed'
        ELSE 'succeeded' END, 1, 5,
    CASE WHEN i % 1000 = 1 OR i % 10 = 0 THEN i END, CASE WHEN i % 1000 = 1 THEN 'node' END, 1, 0, i,
    CASE WHEN i % 1000 <> 1 AND i % 10 <> 0 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO move (job_id, mapping_id, to_mapping_id, license_keys, send_email, after_content, after_order_id,
    given, skipped, skipped_orders)
SELECT 'job_' || (1000000000 + i), i, i + 1, 0, 0, '', 0, 0, 0, '[]' FROM seed ORDER BY seed.i;

INSERT INTO order_timeline (order_id, action, created_at)
SELECT i, 'assigned', i FROM seed ORDER BY seed.i;

INSERT INTO order_visit (order_id, day, network, visited_at) SELECT i, i, '203.0.113.0/24', i FROM seed;

INSERT INTO audit (shop_id, noun, noun_id, action, via, key_id, created_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'order', 'o' || i, 'assigned', 'api', 'key1', i
FROM seed ORDER BY seed.i;

INSERT INTO download_session (id, generation, assignment_id, asset_id, files, etag, size, status,
    bytes, transfers, opened_at, updated_at, idle_at)
SELECT 'link' || i, 1, i, 1, '1', 'etag', 1000, CASE WHEN i % 100 = 0 THEN 'open' ELSE 'counted' END,
    1000, 1, i, i, CASE WHEN i % 100 = 0 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO meter (id, alive_until) SELECT 'meter' || i, i FROM seed WHERE i <= 10;
INSERT INTO node (host, pid_file, pid, build, beat_at)
SELECT 'host' || i, '/run/httpd.pid', i, '0.1.0', i FROM seed WHERE i <= 10;

INSERT INTO alert_finding (name, host, pid_file, of_node, words, seen_at)
SELECT 'storage', 'host' || i, '/run/httpd.pid', 1, 'words', i FROM seed WHERE i <= 10;
INSERT INTO alert (name, host, pid_file, failing, words, teller_host, teller_pid_file)
SELECT 'storage', 'host' || i, '/run/httpd.pid', 1, 'words', 'host' || i, '/run/httpd.pid' FROM seed WHERE i <= 10;

-- Of the open sessions no more than 200 are being sent; the others are idle, as after an outage.
INSERT INTO download_transfer (id, session_id, generation, assignment_id, meter_id, files, bytes)
SELECT 'transfer' || i, 'link' || i, 1, i, 'meter1', '', 10 FROM seed WHERE i % 100 <> 0 OR i <= 20000;

-- One in a hundred has no number yet.
INSERT INTO event (shop_id, type, order_id, data, created_at, number)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'order.assigned', i, '{}', i, CASE WHEN i % 100 <> 5 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO event_count (id, last) SELECT i, i FROM seed;

INSERT INTO day_count (shop_id, day, kind, n) SELECT 1 + i % 2, i, k.n, 1 FROM seed
CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1) k;

INSERT INTO webhook_endpoint (shop_id, job_id, url, secret, is_active, failing_since, created_at, updated_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'job_w' || i, 'https://a.test/', 'sealed', 1,
    CASE WHEN i % 10 = 5 THEN i END, i, i FROM seed
ORDER BY seed.i;

INSERT INTO staff_email (job_id, recipient, template, data) SELECT 'job_s' || i, 'a@a.test', 'webhook_disabled', '{}'
FROM seed ORDER BY seed.i;

INSERT INTO staff_address (shop_id, address, asked_at, confirmed_at) SELECT i, 'a@a.test', i, CASE WHEN i % 2 = 0 THEN i END
FROM seed ORDER BY seed.i;

INSERT INTO staff_email_budget (name, began_at, taken) SELECT 'email/shop/' || i, i, 1 FROM seed ORDER BY seed.i;

INSERT INTO find_request (shop_id, address_mac, address, asked_at, due_at, sent_at, job_id)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'mac' || i, 'sealed', i, CASE WHEN i % 100 = 5 THEN i END,
    CASE WHEN i % 10 = 3 THEN i END, CASE WHEN i % 10 = 3 THEN 'job_f' || i END
FROM seed ORDER BY seed.i;

INSERT INTO news_fill (job_id, asset_id, version, mapping_id, after_id)
SELECT 'job_' || i, i, 2, i, 0 FROM seed ORDER BY seed.i;

INSERT INTO news_item (order_id, asset_id, shop_id, address, version, job_id)
SELECT i, i, CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'c' || i || '@buyer.test', 2,
    CASE WHEN i % 10 = 3 THEN 'job_n' || i END FROM seed ORDER BY seed.i;

INSERT INTO news_address (shop_id, address, due_at, sent_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'c' || i || '@buyer.test', CASE WHEN i % 10 <> 3 THEN i END,
    CASE WHEN i % 10 = 3 THEN i END FROM seed ORDER BY seed.i;

INSERT INTO news_shop (id, due_at) SELECT i, i FROM seed ORDER BY seed.i;

INSERT INTO unsubscribed (shop_id, address_mac, created_at)
SELECT CASE WHEN i % 1000 = 0 THEN 2 ELSE 1 END, 'mac' || i, i FROM seed ORDER BY seed.i;

INSERT INTO webhook_delivery (endpoint_id, event_id, status, attempts, due_at, created_at, updated_at)
SELECT i, i, CASE WHEN i % 100 = 5 THEN 'pending' ELSE 'succeeded' END, 1, CASE WHEN i % 100 = 5 THEN i END, i, i
FROM seed ORDER BY seed.i;
