-- Orders that share an address or a network are counted one after the other, so that each sees the earlier
-- ones. These locks are taken after the order's own lock, the address before the network.
-- part: fraud_locks
-- dialect: sqlite3
NULL, NULL

-- part: fraud_locks
-- dialect: pgsql
pg_advisory_xact_lock(hashtext('mod_downloads address'),
    hashtext(o.shop_id || ' ' || lower({{recipient:o}}))),
pg_advisory_xact_lock(hashtext('mod_downloads network'),
    hashtext(o.shop_id || ' ' || substr(o.client_ip, 1, 19)))

-- name: fraud_subject
SELECT o.shop_id, o.access_status, o.fraud_decision, o.fraud_signals, o.storefront_risk, {{recipient:o}} AS email,
    s.hold_at, CASE WHEN s.storefront_url IS NULL THEN 0 ELSE 1 END AS has_storefront, o.risk_pending,
    {{fraud_locks}}
FROM orders o JOIN shop s ON s.id = o.shop_id
WHERE o.id = %lld

-- Numbers of other orders of the shop since a time, each up to a limit: of the customer, with the same
-- address, from the same IP address; and the customer's revoked and rejected orders.
-- name: fraud_counts
SELECT
    (SELECT count(*) FROM (SELECT w.id FROM orders w
        WHERE w.customer_id = o.customer_id AND w.created_at > %lld:since AND w.id <> o.id
        LIMIT %lld:most_of_customer) a_rows) AS orders_of_customer,
    (SELECT count(*) FROM (
        SELECT w.id FROM customer n JOIN orders w ON w.customer_id = n.id
        WHERE n.shop_id = o.shop_id AND lower(n.email) = lower({{recipient:o}}) AND n.email IS NOT NULL
            AND w.recipient IS NULL AND w.created_at > %lld:since AND w.id <> o.id
        UNION ALL
        SELECT w.id FROM orders w
        WHERE w.shop_id = o.shop_id AND lower(w.recipient) = lower({{recipient:o}}) AND w.recipient IS NOT NULL
            AND w.created_at > %lld:since AND w.id <> o.id
        LIMIT %lld:most_of_address) b_rows) AS orders_of_address,
    (SELECT count(*) FROM (SELECT w.id FROM orders w
        WHERE w.shop_id = o.shop_id AND substr(w.client_ip, 1, 19) = substr(o.client_ip, 1, 19)
            AND w.client_ip IS NOT NULL AND w.created_at > %lld:since AND w.id <> o.id
        LIMIT %lld:most_of_network) c_rows) AS orders_of_ip,
    (SELECT count(*) FROM (SELECT w.id FROM orders w
        WHERE w.customer_id = o.customer_id AND w.access_status IN ('revoked', 'rejected')
            AND w.id <> o.id
        LIMIT %lld:most_revoked) d_rows) AS orders_refused
FROM orders o
WHERE o.id = %lld

-- name: fraud_result
UPDATE orders SET access_status = %s, fraud_decision = %s, fraud_level = %s, fraud_signals = %s,
    risk_pending = %lld
WHERE id = %lld
