-- name: storefront_of_shop
SELECT storefront_url, storefront_token FROM shop WHERE id = %lld

-- name: storefront_set
UPDATE shop SET storefront_url = %s, storefront_token = %s, updated_at = %lld:now WHERE id = %lld

-- name: lookup_open
SELECT id FROM job WHERE order_id = %lld AND status IN ('queued', 'running') AND id <> %s:but LIMIT 1

-- name: lookup_latest
SELECT status, error_message FROM job WHERE order_id = %lld ORDER BY id DESC LIMIT 1

-- The order of a look-up, and whether an email or the fraud check still waits for it.
-- name: lookup_subject
SELECT o.shop_id, o.storefront_order_id, o.customer_id, {{customer_number:c}} AS storefront_customer_id,
    {{recipient:o}} AS email, s.storefront_url, s.storefront_token,
    CASE WHEN o.fraud_decision = 'held' THEN o.risk_pending ELSE 0 END AS for_risk,
    (SELECT count(*) FROM email e
     WHERE e.order_id = o.id AND e.recipient IS NULL AND e.status = 'queued') AS for_email
FROM orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
WHERE o.id = %lld

-- Does not overwrite what the shop's own system has said about a customer.
-- name: customer_complete
UPDATE customer SET email = COALESCE(email, %s:email), first_name = COALESCE(first_name, %s:first_name),
    last_name = COALESCE(last_name, %s:last_name), locale = COALESCE(locale, %s:locale), updated_at = %lld:now
WHERE id = %lld AND (email, first_name, last_name, locale) IS DISTINCT FROM
    (COALESCE(email, %s:email), COALESCE(first_name, %s:first_name), COALESCE(last_name, %s:last_name),
        COALESCE(locale, %s:locale))

-- name: order_lock_by_id
SELECT id FROM orders WHERE id = %lld {{for_no_key_update}}

-- name: order_set_storefront
UPDATE orders SET storefront_risk = COALESCE(%s:risk, storefront_risk),
    client_ip = COALESCE(client_ip, %s:client_ip)
WHERE id = %lld
