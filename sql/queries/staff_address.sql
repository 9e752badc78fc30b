-- The state of an address: whose it is, and whether it was asked and has confirmed.
-- name: staff_address_find
SELECT s.name, s.domain,
    (SELECT count(*) FROM member m WHERE m.shop_id = s.id AND (m.email = %s:address
            OR (m.email IS NULL AND m.user_name = %s:address AND m.role = 'owner')))
        + CASE WHEN s.email = %s:address THEN 1 ELSE 0 END AS is_reached,
    a.asked_at, a.confirmed_at
FROM shop s LEFT JOIN staff_address a ON a.shop_id = %lld AND a.address = %s
WHERE s.id = %lld:shop_id

-- name: staff_address_ask
INSERT INTO staff_address (shop_id, address, asked_at) VALUES (%lld:shop_id, %s:address, %lld:now)
ON CONFLICT (shop_id, address) DO UPDATE SET asked_at = excluded.asked_at

-- name: staff_address_confirm
INSERT INTO staff_address (shop_id, address, asked_at, confirmed_at)
    VALUES (%lld:shop_id, %s:address, %lld:now, %lld:now)
ON CONFLICT (shop_id, address) DO UPDATE SET confirmed_at = excluded.confirmed_at

-- Removes an address that nobody has any more.
-- name: staff_address_forget
DELETE FROM staff_address WHERE shop_id = %lld AND address = %s
    AND (SELECT count(*) FROM member m
        WHERE m.shop_id = staff_address.shop_id
            AND COALESCE(m.email, m.user_name) = staff_address.address) = 0
    AND (SELECT count(*) FROM shop s
        WHERE s.id = staff_address.shop_id AND s.email = staff_address.address) = 0
