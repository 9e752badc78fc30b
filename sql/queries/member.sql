-- part: member_columns
m.user_name, m.shop_id, m.role, m.created_at, m.email, s.name,
(SELECT a.asked_at FROM staff_address a WHERE a.shop_id = m.shop_id
    AND a.address = COALESCE(m.email, m.user_name)) AS asked_at,
(SELECT a.confirmed_at FROM staff_address a WHERE a.shop_id = m.shop_id
    AND a.address = COALESCE(m.email, m.user_name)) AS confirmed_at

-- name: member_put
INSERT INTO member (user_name, shop_id, role, created_at) VALUES (%s:user_name, %lld:shop_id, %s:role, %lld:now)
ON CONFLICT (user_name, shop_id) DO UPDATE SET role = excluded.role
RETURNING created_at

-- name: member_delete
DELETE FROM member WHERE user_name = %s AND shop_id = %lld
RETURNING COALESCE(email, user_name)

-- name: member_find
SELECT {{member_columns}} FROM member m LEFT JOIN shop s ON s.id = m.shop_id
WHERE m.user_name = %s AND m.shop_id = %lld

-- name: member_set_email
UPDATE member SET email = %s WHERE user_name = %s AND shop_id = %lld

-- The role of a user in a shop, or in every shop.
-- name: member_role
SELECT role FROM member WHERE user_name = %s AND shop_id IN (0, %lld:shop_id) ORDER BY shop_id LIMIT 1

-- name: member_list
SELECT {{member_columns}} FROM member m LEFT JOIN shop s ON s.id = m.shop_id
ORDER BY m.shop_id, m.user_name LIMIT %lld

-- name: member_list_of_shop
SELECT {{member_columns}} FROM member m LEFT JOIN shop s ON s.id = m.shop_id
WHERE m.shop_id = %lld ORDER BY m.user_name LIMIT %lld

-- name: member_list_of_user
SELECT {{member_columns}} FROM member m LEFT JOIN shop s ON s.id = m.shop_id
WHERE m.user_name = %s ORDER BY m.shop_id LIMIT %lld
