-- A customer, or the one into whom the customer was merged.
-- part: who_stays
COALESCE((SELECT m.merged_into FROM customer m WHERE m.id = %lld:id), %lld:id)

-- part: customer_columns
id, {{customer_number:customer}} AS storefront_customer_id, email, first_name, last_name, locale, created_at, updated_at

-- name: customer_by_id
SELECT {{customer_columns}} FROM customer WHERE id = {{who_stays}} AND shop_id = %lld

-- name: customers_of_shop
SELECT {{customer_columns}} FROM customer WHERE shop_id = %lld ORDER BY customer.storefront_customer_id LIMIT %lld

-- name: customers_with_email
SELECT {{customer_columns}} FROM customer
WHERE shop_id = %lld AND email IS NOT NULL AND lower(email) = lower(%s:email) ORDER BY id LIMIT %lld

-- name: customer_orders
SELECT id FROM orders WHERE customer_id = %lld ORDER BY created_at DESC, id DESC LIMIT %lld

-- name: customer_lock
SELECT id FROM customer WHERE id = {{who_stays}} AND shop_id = %lld {{for_no_key_update}}

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

-- Merging customers (mod_downloads/core/order/merge.h).

-- name: customers_lock
SELECT id, merged_into, {{customer_number:customer}} AS storefront_customer_id, email, email_replaced, first_name, last_name,
    locale, updated_at
FROM customer WHERE id {{in_given}} AND +shop_id = %lld ORDER BY id {{for_no_key_update}}

-- How many were merged into the given ones, up to a limit.
-- name: customers_merged
SELECT count(*) AS merged FROM (SELECT id FROM customer WHERE merged_into {{in_given}} LIMIT %lld) q_rows

-- name: customers_follow
UPDATE customer SET merged_into = %lld:into_id WHERE merged_into = %lld:id

-- name: customer_set_merged
UPDATE customer SET merged_into = %lld, merging = %lld, updated_at = {{later}} WHERE id = %lld

-- The one who stays gets what is known of the other alone.
-- name: customer_take
UPDATE customer SET email = COALESCE(email, %s:email),
    email_replaced = COALESCE(email_replaced,
        CASE WHEN email IS NULL OR lower(email) = lower(%s:email) THEN %s:email_replaced END),
    first_name = COALESCE(first_name, %s:first_name), last_name = COALESCE(last_name, %s:last_name),
    locale = COALESCE(locale, %s:locale), updated_at = {{later}}
WHERE id = %lld

-- name: orders_move
UPDATE orders SET customer_id = %lld, recipient = COALESCE(recipient, %s:recipient), updated_at = {{later}}
WHERE id {{in_given}}

-- name: customer_merging
SELECT id FROM customer WHERE shop_id = %lld AND merging > 0 ORDER BY id LIMIT 1

-- name: customer_merge_done
UPDATE customer SET merging = 0 WHERE id = %lld
