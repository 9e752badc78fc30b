-- An order as a list shows it.
-- part: order_line
o.id, o.storefront_order_id, o.access_status, o.created_at, o.name,
{{customer_number:c}} AS storefront_customer_id, {{recipient:o}} AS email, c.first_name, c.last_name,
(SELECT CASE WHEN e.held <> 0 THEN 'held'
    WHEN e.status = 'sent' AND e.bounced_at IS NOT NULL THEN 'bounced' ELSE e.status END
    FROM email e WHERE e.order_id = o.id AND e.help_id IS NULL ORDER BY e.id DESC LIMIT 1) AS email_status

-- name: order_lines_by_id
SELECT {{order_line}} FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.id {{in_given}}

-- The status of the newest email of the order o.
-- part: order_email
COALESCE((SELECT CASE WHEN e.held <> 0 THEN 'held'
        WHEN e.status = 'sent' AND e.bounced_at IS NOT NULL THEN 'bounced' ELSE e.status END
    FROM email e WHERE e.order_id = o.id AND e.help_id IS NULL ORDER BY e.id DESC LIMIT 1), 'not_requested')

-- Whether the customer of the active order o may lack something: 0 for no.
-- part: order_lacks
CASE COALESCE(%s:attention, '')
    WHEN 'expired' THEN (SELECT count(*) FROM assignment a
        WHERE a.order_id = o.id AND a.status = 'active' AND a.expires_at <= %lld:now)
    WHEN 'limit_reached' THEN COALESCE((SELECT 1 FROM assignment a CROSS JOIN mapping m CROSS JOIN allowance w
        WHERE a.order_id = o.id AND a.status = 'active' AND m.id = a.mapping_id AND w.assignment_id = a.id
            AND COALESCE(m.download_limit, a.download_limit, %lld:download_limit) > 0
            AND w.downloads_used
                >= a.quantity * COALESCE(m.download_limit, a.download_limit, %lld:download_limit)
                    + w.downloads_extra
            AND {{w_counts}} LIMIT 1), 0)
    WHEN 'preparing' THEN COALESCE((SELECT 1 FROM assignment a CROSS JOIN mapping_file mf CROSS JOIN asset s
        WHERE a.order_id = o.id AND a.status = 'active' AND a.content = 'live' AND mf.mapping_id = a.mapping_id
            AND s.id = mf.asset_id AND s.status <> 'ready' LIMIT 1),
        (SELECT 1 FROM assignment a CROSS JOIN mapping_pack mp CROSS JOIN pack_file pf CROSS JOIN asset s
        WHERE a.order_id = o.id AND a.status = 'active' AND a.content = 'live' AND mp.mapping_id = a.mapping_id
            AND pf.pack_id = mp.pack_id AND s.id = pf.asset_id AND s.status <> 'ready' LIMIT 1), 0)
    WHEN 'keys_owed' THEN (SELECT count(*) FROM assignment a CROSS JOIN license_claim c
        WHERE a.order_id = o.id AND a.status = 'active' AND c.assignment_id = a.id AND +c.assigned < c.wanted)
    ELSE 1 END

-- Whether the order o matches the filters; a filter that is not given is NULL, or 0.
-- part: order_fits
CASE WHEN +o.shop_id = %lld AND o.access_status = COALESCE(%s:access, o.access_status)
    AND o.created_at >= %lld:created_since AND o.created_at < %lld:created_before
    AND o.updated_at >= %lld:updated_since
    AND (COALESCE(%s:email, '') = '' OR lower({{recipient:o}}) = lower(%s:email))
    AND (COALESCE(%s:product, '') = '' OR (SELECT count(*) FROM assignment a
        WHERE a.order_id = o.id AND a.storefront_product_id = %s:product) > 0)
    AND (COALESCE(%s:email_status, '') = '' OR {{order_email}} = %s:email_status)
    AND (COALESCE(%s:attention, '') = '' OR (o.access_status = 'active' AND {{order_lacks}} > 0))
    THEN 1 ELSE 0 END

-- The orders of a shop in some sequence, with their positions; a fixed number of rows is read.
-- name: order_walk
SELECT o.created_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND (o.created_at, o.id) < (%lld:key, %lld:id) AND o.created_at >= %lld:created_since
    AND o.created_at > 0
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- Of any state but "active".
-- name: order_walk_of_state
SELECT o.created_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND o.access_status = %s:access AND o.access_status <> 'active'
    AND (o.created_at, o.id) < (%lld:key, %lld:id) AND o.created_at >= %lld:created_since
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_update
SELECT o.updated_at, o.id, {{order_fits}} AS fits FROM orders o
WHERE o.shop_id = %lld AND (o.updated_at, o.id) < (%lld:key, %lld:id) AND o.updated_at >= %lld:updated_since
    AND o.updated_at > 0
ORDER BY o.updated_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_product
SELECT o.id, o.id, {{order_fits}} AS fits
FROM (SELECT DISTINCT a.order_id FROM assignment a
    WHERE a.shop_id = %lld AND a.shop_id > 0 AND a.storefront_product_id = %s:product AND a.order_id < %lld:id
    ORDER BY a.order_id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY o.id DESC

-- By the emails that did not arrive, the newest first; only the newest email of an order counts.
-- name: order_walk_of_undelivered
SELECT q.id, o.id, CASE WHEN q.id = (SELECT e.id FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1)
    THEN {{order_fits}} ELSE 0 END AS fits
FROM (SELECT id, order_id FROM email
    WHERE shop_id = %lld AND (status IN ('failed', 'no_recipient') OR bounced_at IS NOT NULL) AND id < %lld:key
    ORDER BY id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY q.id DESC

-- By the emails that wait for a review.
-- name: order_walk_of_held_email
SELECT q.id, o.id, CASE WHEN q.id = (SELECT e.id FROM email e WHERE e.order_id = o.id ORDER BY e.id DESC LIMIT 1)
    THEN {{order_fits}} ELSE 0 END AS fits
FROM (SELECT id, order_id FROM email WHERE shop_id = %lld AND held <> 0 AND id < %lld:key
    ORDER BY id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY q.id DESC

-- Active orders of which something has expired, the latest end first.
-- name: order_walk_of_expired
SELECT q.expires_at, o.id, CASE WHEN q.expires_at = (SELECT max(a.expires_at) FROM assignment a
        WHERE a.order_id = o.id AND a.status = 'active' AND a.expires_at <= %lld:now)
    THEN {{order_fits}} ELSE 0 END AS fits
FROM (SELECT DISTINCT expires_at, order_id FROM assignment
    WHERE shop_id = %lld AND expires_at > 0 AND expires_at <= %lld:now AND status = 'active'
        AND (expires_at, order_id) < (%lld:key, %lld:id)
    ORDER BY expires_at DESC, order_id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY q.expires_at DESC, o.id DESC

-- By the events that a file had no download left, which may be out of date.
-- name: order_walk_of_limit_reached
SELECT o.id, o.id, {{order_fits}} AS fits
FROM (SELECT DISTINCT order_id FROM event
    WHERE shop_id = %lld AND type = 'download.limit_reached' AND order_id < %lld:id
    ORDER BY order_id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY o.id DESC

-- Orders that wait for license keys.
-- name: order_walk_of_keys_owed
SELECT q.assignment_id, o.id, CASE WHEN q.assignment_id = (SELECT max(b.id)
        FROM assignment b CROSS JOIN license_claim c
        WHERE b.order_id = o.id AND b.status = 'active' AND c.assignment_id = b.id AND +c.assigned < c.wanted)
    THEN {{order_fits}} ELSE 0 END AS fits
FROM (SELECT DISTINCT assignment_id FROM license_claim
    WHERE shop_id = %lld AND shop_id > 0 AND assigned < wanted AND assignment_id < %lld:key
    ORDER BY assignment_id DESC LIMIT %lld) q CROSS JOIN assignment a CROSS JOIN orders o
WHERE a.id = q.assignment_id AND o.id = a.order_id
ORDER BY q.assignment_id DESC

-- The mappings of some files that are not there, the newest files first.
-- name: mappings_unfinished
SELECT mapping_id FROM (
    SELECT mf.mapping_id
    FROM (SELECT id FROM asset WHERE shop_id = %lld AND status = %s AND status > '' AND deleted_at IS NULL
        ORDER BY id DESC LIMIT 100) s
    CROSS JOIN mapping_file mf
    WHERE mf.asset_id = s.id LIMIT %lld
) file_rows
UNION
SELECT mapping_id FROM (
    SELECT mp.mapping_id
    FROM (SELECT id FROM asset WHERE shop_id = %lld AND status = %s AND status > '' AND deleted_at IS NULL
        ORDER BY id DESC LIMIT 100) s
    CROSS JOIN pack_file pf CROSS JOIN mapping_pack mp
    WHERE pf.asset_id = s.id AND mp.pack_id = pf.pack_id LIMIT %lld
) pack_rows

-- The orders that follow these mappings.
-- name: order_walk_of_mappings
-- dialect: sqlite3
SELECT o.id, o.id, {{order_fits}} AS fits
FROM (SELECT DISTINCT n.id FROM (SELECT value AS id FROM json_each(%ids)) m CROSS JOIN orders n
    WHERE n.id IN (SELECT a.order_id FROM assignment a
        WHERE a.mapping_id = m.id AND a.content = 'live' AND a.order_id < %lld:id
        ORDER BY a.order_id DESC LIMIT %lld)
    ORDER BY n.id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.id
ORDER BY o.id DESC

-- name: order_walk_of_mappings
-- dialect: pgsql
SELECT o.id, o.id, {{order_fits}} AS fits
FROM (SELECT DISTINCT a.order_id FROM unnest(%ids) m (id) CROSS JOIN LATERAL (
    SELECT order_id FROM assignment WHERE mapping_id = m.id AND content = 'live' AND order_id < %lld:id
    ORDER BY order_id DESC LIMIT %lld) a
    ORDER BY a.order_id DESC LIMIT %lld) q CROSS JOIN orders o
WHERE o.id = q.order_id
ORDER BY o.id DESC

-- Of the given customers, and those whose own address is the recipient.
-- name: order_walk_of_customers
-- dialect: sqlite3
SELECT o.created_at, o.id, {{order_fits}} AS fits
FROM (
    SELECT q.id FROM (SELECT value AS id FROM json_each(%ids)) c CROSS JOIN orders q
    WHERE q.id IN (SELECT w.id FROM orders w WHERE w.customer_id = c.id
        AND (w.created_at, w.id) < (%lld:key, %lld:id) AND w.created_at >= %lld:created_since
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
    UNION
    SELECT id FROM (SELECT w.id FROM orders w
        WHERE w.shop_id = %lld AND lower(w.recipient) = lower(%s:recipient) AND w.recipient IS NOT NULL
        AND (w.created_at, w.id) < (%lld:key, %lld:id) AND w.created_at >= %lld:created_since
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
) q_rows CROSS JOIN orders o
WHERE o.id = q_rows.id
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: order_walk_of_customers
-- dialect: pgsql
SELECT o.created_at, o.id, {{order_fits}} AS fits
FROM (
    SELECT q.id FROM unnest(%ids) c (id) CROSS JOIN LATERAL (
        SELECT w.id FROM orders w WHERE w.customer_id = c.id
            AND (w.created_at, w.id) < (%lld:key, %lld:id) AND w.created_at >= %lld:created_since
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld) q
    UNION
    (SELECT w.id FROM orders w
        WHERE w.shop_id = %lld AND lower(w.recipient) = lower(%s:recipient) AND w.recipient IS NOT NULL
            AND (w.created_at, w.id) < (%lld:key, %lld:id) AND w.created_at >= %lld:created_since
        ORDER BY w.created_at DESC, w.id DESC LIMIT %lld)
) q_rows CROSS JOIN LATERAL (SELECT * FROM orders WHERE id = q_rows.id OFFSET 0) o
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- The newest orders of customers.
-- name: orders_of_customers
-- dialect: sqlite3
SELECT o.id
FROM (SELECT value AS id FROM json_each(%ids)) c CROSS JOIN orders o
WHERE o.id IN (SELECT q.id FROM orders q WHERE q.customer_id = c.id
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld)
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: orders_of_customers
-- dialect: pgsql
SELECT o.id
FROM unnest(%ids) c (id) CROSS JOIN LATERAL (
    SELECT q.id, q.created_at FROM orders q WHERE q.customer_id = c.id
    ORDER BY q.created_at DESC, q.id DESC LIMIT %lld) o
ORDER BY o.created_at DESC, o.id DESC LIMIT %lld

-- name: customer_of_number
SELECT COALESCE(merged_into, id) AS id FROM customer WHERE shop_id = %lld AND storefront_customer_id = %s

-- name: customers_of_email
SELECT id FROM customer
WHERE shop_id = %lld AND email IS NOT NULL AND lower(email) = lower(%s:email) LIMIT %lld

-- name: order_lines_that_fit
SELECT {{order_line}}, {{order_fits}} AS fits FROM orders o JOIN customer c ON c.id = o.customer_id
WHERE o.id {{in_given}}
