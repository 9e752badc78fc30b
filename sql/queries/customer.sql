-- name: customer_by_id
SELECT id, {{customer_number:customer}} AS storefront_customer_id, email, first_name, last_name, locale, created_at, updated_at
FROM customer WHERE id = %lld AND shop_id = %lld

-- name: customer_lock
SELECT id FROM customer WHERE id = %lld AND shop_id = %lld {{for_no_key_update}}

-- What the source of the former address has said last is kept, however often a person replaces it.
-- name: customer_set_email
UPDATE customer SET email = %s:email,
    email_replaced = NULLIF(COALESCE(email_replaced, email), %s:email), updated_at = {{later}}
WHERE id = %lld

-- Locks the newest orders of a customer, and tells which follow its address.
-- name: customer_orders_lock
SELECT id, CASE WHEN recipient IS NULL THEN 1 ELSE 0 END AS follows FROM orders WHERE customer_id = %lld
ORDER BY created_at DESC, id DESC LIMIT %lld {{for_no_key_update}}

-- name: customer_orders_follow
UPDATE orders SET recipient = NULL, updated_at = {{later}} WHERE id {{in_given}}

-- name: order_set_recipient
UPDATE orders SET recipient = %s WHERE id = %lld RETURNING {{recipient:orders}} AS address
