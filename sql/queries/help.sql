-- Requests of customers for help (mod_downloads/core/order/help.h). Times are by the database's clock.

-- Whether an order may ask now, and its shop be asked. The order is locked.
-- name: help_counts
SELECT (SELECT count(*) FROM help_request WHERE order_id = %lld:order_id AND state = 'asked') AS asked,
    (SELECT count(*) FROM help_request WHERE order_id = %lld:order_id AND +asked_at > {{now}} - 2592000000000) AS lately,
    (SELECT count(*) FROM (SELECT id FROM help_request WHERE shop_id = %lld:shop_id AND state = 'asked'
        AND asked_at > {{help_lapses}} LIMIT %lld) open_requests) AS shop_asked,
    CASE WHEN EXISTS (SELECT 1 FROM help_request WHERE order_id = %lld:order_id) THEN 1 ELSE 0 END AS ever,
    (SELECT count(*) FROM help_request WHERE order_id = %lld:order_id AND state = 'granted'
        AND +decided_at > {{now}} - 600000000) AS just_granted,
    (SELECT help FROM shop WHERE id = %lld:shop_id) AS shop_help

-- name: help_lapse
UPDATE help_request SET state = 'lapsed' WHERE order_id = %lld AND state = 'asked' AND +asked_at <= {{help_lapses}}

-- name: help_insert
INSERT INTO help_request (shop_id, order_id, finding, state, asked_at)
VALUES (%lld:shop_id, %lld:order_id, %s:finding, 'asked', {{now}})

-- part: help_columns
h.id, h.finding, {{help_state}} AS state, h.answer, h.decided_by, h.asked_at, h.decided_at,
(SELECT o.storefront_order_id FROM orders o WHERE o.id = h.order_id) AS storefront_order_id,
(SELECT o.name FROM orders o WHERE o.id = h.order_id) AS order_name

-- name: help_by_id
SELECT {{help_columns}} FROM help_request h
WHERE h.id = %lld AND +h.shop_id = %lld:shop_id

-- The newest request of an order.
-- name: help_of_order
SELECT {{help_columns}} FROM help_request h
WHERE h.order_id = %lld ORDER BY h.id DESC LIMIT 1

-- The shop's answer to a request that waits for it.
-- name: help_settle
UPDATE help_request SET state = %s:state, answer = %s:answer, decided_by = %s:decided_by, decided_at = {{now}}
WHERE order_id = %lld AND state = 'asked' AND +asked_at > {{help_lapses}}

-- name: help_page
SELECT {{help_columns}} FROM help_request h WHERE h.shop_id = %lld AND h.id < %lld:before ORDER BY h.id DESC LIMIT %lld

-- The newest of a shop's requests that wait; 1,000 at most.
-- name: help_waiting
SELECT {{help_columns}} FROM help_request h
WHERE h.shop_id = %lld AND h.state = 'asked' AND h.asked_at > {{help_lapses}} AND +h.id < %lld:before
ORDER BY h.asked_at DESC, h.id DESC LIMIT %lld
