-- Whether a request's address for a customer is that of somebody who was merged into the customer.
-- part: email_merged
EXISTS (SELECT 1 FROM customer m WHERE m.merged_into = customer.id AND lower(m.email) = lower(excluded.email))

-- A request's address for a customer. The address that a person has replaced is not taken again, nor is a merged one.
-- part: email_given
CASE WHEN %lld:no_email = 1 THEN NULL
    WHEN lower(excluded.email) = lower(customer.email_replaced) OR {{email_merged}} THEN customer.email
    ELSE COALESCE(excluded.email, customer.email) END

-- The number of a customer k, or of the one into whom k was merged.
-- part: number_that_stays
(SELECT n.storefront_customer_id FROM customer n WHERE n.id = COALESCE(k.merged_into, k.id))

-- Whose order it is: the customer of the given number, or the order's customer so far, or a guest.
-- part: customer_key
COALESCE((SELECT {{number_that_stays}} FROM customer k
        WHERE k.shop_id = %lld:shop_id AND k.storefront_customer_id = %s:storefront_customer_id),
    %s:storefront_customer_id, (SELECT {{number_that_stays}} FROM orders g JOIN customer k ON k.id = g.customer_id
        WHERE g.shop_id = %lld:shop_id AND g.storefront_order_id = %s:storefront_order_id),
    'order:' || %s:storefront_order_id)

-- Members that a request leaves out stay unchanged; null clears them.  updated_at is that of the last
-- change of one of them.
-- name: customer_upsert
INSERT INTO customer (shop_id, storefront_customer_id, email, first_name, last_name, locale,
    created_at, updated_at)
VALUES (%lld:shop_id, {{customer_key}}, %s:email, %s:first_name, %s:last_name, %s:locale, %lld:now,
    %lld:now)
ON CONFLICT (shop_id, storefront_customer_id) DO UPDATE SET
    email = {{email_given}},
    email_replaced = CASE WHEN %lld:no_email = 1
        OR lower(excluded.email) NOT IN (lower(customer.email), lower(customer.email_replaced))
            AND NOT {{email_merged}} THEN NULL
        ELSE customer.email_replaced END,
    first_name = CASE WHEN %lld:no_first = 1 THEN NULL ELSE COALESCE(excluded.first_name, customer.first_name)
        END,
    last_name = CASE WHEN %lld:no_last = 1 THEN NULL ELSE COALESCE(excluded.last_name, customer.last_name) END,
    locale = CASE WHEN %lld:no_locale = 1 THEN NULL ELSE COALESCE(excluded.locale, customer.locale) END,
    updated_at = CASE WHEN (customer.email, customer.first_name, customer.last_name, customer.locale)
        IS DISTINCT FROM (
            {{email_given}},
            CASE WHEN %lld:no_first = 1 THEN NULL ELSE COALESCE(excluded.first_name, customer.first_name) END,
            CASE WHEN %lld:no_last = 1 THEN NULL ELSE COALESCE(excluded.last_name, customer.last_name) END,
            CASE WHEN %lld:no_locale = 1 THEN NULL ELSE COALESCE(excluded.locale, customer.locale) END)
        THEN excluded.updated_at ELSE customer.updated_at END
RETURNING id, email, first_name, last_name, locale, updated_at, created_at, merged_into

-- name: order_address
SELECT o.shop_id, {{recipient:o}} AS address FROM orders o WHERE o.id = %lld

-- name: order_names
SELECT shop_id, storefront_order_id, name, recipient FROM orders WHERE id = %lld

-- A customer is also found by what the newest of those were called who were merged into it.
-- name: customer_names
SELECT shop_id, {{customer_number:customer}} AS storefront_customer_id, email, first_name, last_name FROM customer WHERE id = %lld
UNION ALL
SELECT * FROM (SELECT shop_id, {{customer_number:customer}} AS storefront_customer_id, email, first_name, last_name
    FROM customer WHERE merged_into = %lld:id ORDER BY merged_into DESC, id DESC LIMIT 20) q_rows

-- name: customers_by_id
SELECT id, {{customer_number:customer}} AS storefront_customer_id, email, first_name, last_name, locale FROM customer
WHERE +shop_id = %lld AND id {{in_given}}

-- For a customer that customer_upsert has made. The update locks the order's row, so that assignments of one
-- order run one after the other.
-- name: order_upsert
INSERT INTO orders (shop_id, storefront_order_id, name, customer_id, page_id, client_ip, access_status,
    fraud_decision, undeclared, created_at, updated_at)
SELECT c.shop_id, %s:storefront_order_id, %s:name, c.id, %s:page_id, %s:client_ip, 'active', 'not_checked',
    (SELECT h.declaration FROM shop h WHERE h.id = c.shop_id), %lld:now, %lld:now
FROM customer c WHERE c.shop_id = %lld AND c.storefront_customer_id = {{customer_key}}
ON CONFLICT (shop_id, storefront_order_id) DO UPDATE SET
    client_ip = COALESCE(excluded.client_ip, orders.client_ip)
RETURNING id, customer_id, access_status, page_id, updated_at, {{recipient:orders}} AS address, name,
    undeclared

-- To a customer who has the address of the order, or the same as the former customer now or before a person
-- replaced it, or into whom the former one was merged. The order keeps its address.
-- name: order_change_customer
UPDATE orders SET customer_id = %lld, recipient = CASE
    WHEN lower({{recipient:orders}}) = (SELECT lower(n.email) FROM customer n WHERE n.id = %lld:customer_id)
    THEN orders.recipient ELSE {{recipient:orders}} END
WHERE id = %lld AND ((SELECT lower(n.email) FROM customer n WHERE n.id = %lld:customer_id) IN (
    lower(orders.recipient),
    (SELECT lower(c.email) FROM customer c WHERE c.id = orders.customer_id),
    (SELECT lower(c.email_replaced) FROM customer c WHERE c.id = orders.customer_id))
    OR (SELECT c.merged_into FROM customer c WHERE c.id = orders.customer_id) = %lld:customer_id)
RETURNING {{recipient:orders}} AS address

-- Locks an order until the commit, before it is read and changed. Entries can still be added to its timeline.
-- name: order_lock
SELECT id FROM orders WHERE shop_id = %lld AND storefront_order_id = %s {{for_no_key_update}}

-- name: order_set_access
UPDATE orders SET access_status = %s, access_reason = %s, fraud_decision = %s WHERE id = %lld

-- Of two presses of the button, the first one counts.
-- name: order_declare
UPDATE orders SET undeclared = 0, declared_at = %lld:now
WHERE page_id = %s AND undeclared = 1 AND access_status = 'active'
RETURNING id, shop_id, {{recipient:orders}} AS address

-- name: order_set_name
UPDATE orders SET name = %s WHERE id = %lld

-- name: order_note_typo
UPDATE orders SET likely_typo = %s WHERE id = %lld AND likely_typo IS DISTINCT FROM %s:likely_typo

-- name: order_replace_page
UPDATE orders SET page_id = %s, page_replaced_at = %lld:now WHERE id = %lld

-- name: order_touch
UPDATE orders SET updated_at = {{later}} WHERE id = %lld

-- name: order_touch_of_email
UPDATE orders SET updated_at = {{later}} WHERE id = (SELECT order_id FROM email WHERE id = %lld)

-- part: order_columns
o.id, o.storefront_order_id, o.page_id, o.access_status, o.access_reason, o.fraud_decision,
o.name AS order_name, o.recipient AS own_address, {{recipient:o}} AS address,
o.created_at, c.id AS customer_id, {{customer_number:c}} AS storefront_customer_id, c.email, c.first_name, c.last_name, c.locale,
s.id AS shop_id, s.name, s.domain AS shop_domain, COALESCE(s.reply_to, s.email) AS shop_email, s.withdrawal_url, s.help AS shop_help, s.accent, s.languages, s.email_texts, s.logo_sha256,
s.logo_width,
s.logo_height, o.fraud_level, o.fraud_signals,
o.risk_pending, s.blocked_at, o.updated_at, o.undeclared, o.declared_at, {{email_columns}}

-- An order with its customer, its shop and its newest email, if it has one, apart from answers to requests for help.
-- part: order_tables
-- dialect: sqlite3
orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
LEFT JOIN email e ON e.id = (SELECT max(l.id) FROM email l WHERE l.order_id = o.id AND l.help_id IS NULL)

-- part: order_tables
-- dialect: pgsql
orders o JOIN customer c ON c.id = o.customer_id JOIN shop s ON s.id = o.shop_id
LEFT JOIN LATERAL (SELECT * FROM email WHERE order_id = o.id AND help_id IS NULL ORDER BY id DESC LIMIT 1) e
    ON true

-- name: order_by_storefront_id
SELECT {{order_columns}}
FROM {{order_tables}}
WHERE o.shop_id = %lld AND o.storefront_order_id = %s

-- The newest request for help of an order.
-- part: order_help
-- dialect: sqlite3
LEFT JOIN help_request h ON h.id = (SELECT max(l.id) FROM help_request l WHERE l.order_id = o.id)

-- part: order_help
-- dialect: pgsql
LEFT JOIN LATERAL (SELECT * FROM help_request WHERE order_id = o.id ORDER BY id DESC LIMIT 1) h ON true

-- With 0 for a visit of the page that must be recorded: neither a network's later one on its day, nor one of
-- another network on a day that has 20.
-- name: order_by_page_id
SELECT {{order_columns}}, (SELECT (count(*) + 20 * COALESCE(sum(CASE WHEN v.network = %s:network THEN 1 ELSE 0 END), 0))
    / 20 FROM order_visit v WHERE v.order_id = o.id AND v.day = %lld:day) AS visit_known,
    {{help_state}} AS help_state, h.asked_at AS help_asked_at, h.answer AS help_answer
FROM {{order_tables}} {{order_help}}
WHERE o.page_id = %s:page_id

-- name: order_visit_insert
INSERT INTO order_visit (order_id, day, network, visited_at)
SELECT %lld:order_id, %lld:day, %s:network, %lld:visited_at
WHERE (SELECT count(*) FROM order_visit WHERE order_id = %lld:order_id AND day = %lld:day) < 20
ON CONFLICT (order_id, day, network) DO NOTHING

-- name: order_visits
SELECT network, visited_at FROM order_visit WHERE order_id = %lld ORDER BY day DESC, network LIMIT %lld

-- name: order_by_id
SELECT {{order_columns}}
FROM {{order_tables}}
WHERE o.id = %lld

-- name: orders_by_id
SELECT {{order_columns}}
FROM {{order_tables}}
WHERE o.id {{in_given}}
ORDER BY +o.id DESC

-- name: assignment_of_item
SELECT id FROM assignment
WHERE order_id = (SELECT id FROM orders WHERE shop_id = %lld AND storefront_order_id = %s)
    AND storefront_product_id = %s AND storefront_variant_id = %s

-- name: assignment_insert
INSERT INTO assignment (shop_id, order_id, storefront_product_id, storefront_variant_id, title,
    quantity, mapping_id, content, status, download_limit, expires_at, created_at)
VALUES (%lld:shop_id, %lld:order_id, %s:storefront_product_id, %s:storefront_variant_id, %s:title,
    %lld:quantity, %lld:mapping_id, %s:content, 'active', %lld:download_limit?-1, %lld:expires_at?0, %lld:now)
ON CONFLICT (order_id, storefront_product_id, storefront_variant_id) DO NOTHING
RETURNING id

-- name: assignment_quantities
SELECT storefront_product_id, storefront_variant_id, id, quantity, status
FROM assignment WHERE order_id = %lld ORDER BY id

-- The files of mappings, given as m_rows (assignment_id, mapping_id): a mapping's own, then those of its packs.
-- On PostgreSQL a view would do. SQLite would first collect the view for all assignments, and needs CROSS JOIN
-- to begin with the few given ones.
-- part: mapping_files
SELECT m_rows.assignment_id, m_rows.mapping_id, mf.asset_id, -1 AS pack, mf.position
FROM m_rows CROSS JOIN mapping_file mf
WHERE mf.mapping_id = m_rows.mapping_id
UNION ALL
SELECT m_rows.assignment_id, m_rows.mapping_id, pf.asset_id, mp.position, pf.position
FROM m_rows CROSS JOIN mapping_pack mp CROSS JOIN pack_file pf
WHERE mp.mapping_id = m_rows.mapping_id AND pf.pack_id = mp.pack_id

-- A pack is pinned by its files; a file that occurs twice keeps its first place.
-- name: assignment_pin_files
WITH m_rows (assignment_id, mapping_id) AS (
    SELECT id, mapping_id FROM assignment WHERE id = %lld AND content = 'pinned'
)
INSERT INTO assignment_file (assignment_id, asset_id, position)
SELECT f_rows.assignment_id, f_rows.asset_id,
    row_number() OVER (ORDER BY f_rows.pack, f_rows.position)
FROM ({{mapping_files}}) f_rows
WHERE true
ORDER BY f_rows.pack, f_rows.position
ON CONFLICT (assignment_id, asset_id) DO NOTHING

-- name: assignment_pin_links
INSERT INTO assignment_link (assignment_id, link_id, position)
SELECT a.id, l.link_id, l.position
FROM assignment a JOIN mapping_link l ON l.mapping_id = a.mapping_id
WHERE a.id = %lld AND a.content = 'pinned'

-- name: assignments_set_status
UPDATE assignment SET status = %s
WHERE id {{in_given}}

-- name: assignment_set_quantity
UPDATE assignment SET quantity = %lld WHERE id = %lld

-- Access that has ended is extended from now, access without an end stays so, and no end is later than
-- the year 9999.
-- name: assignments_extend
-- dialect: sqlite3
UPDATE assignment SET expires_at = min(max(expires_at, %lld:now) + %lld:extension, 253402300799999999)
WHERE id {{in_given}} AND expires_at IS NOT NULL

-- name: assignments_extend
-- dialect: pgsql
UPDATE assignment SET expires_at = least(greatest(expires_at, %lld:now) + %lld:extension, 253402300799999999)
WHERE id {{in_given}} AND expires_at IS NOT NULL

-- Adds downloads for each pair of an assignment and an asset in a JSON array.
-- name: allowance_grant
-- dialect: sqlite3
INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), 0, CAST(%lld:downloads_extra AS INTEGER)
FROM json_each(%s:pairs) WHERE true
ON CONFLICT (assignment_id, asset_id) DO UPDATE SET
    downloads_extra = allowance.downloads_extra + excluded.downloads_extra

-- name: allowance_grant
-- dialect: pgsql
INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra)
SELECT (value->>0)::bigint, (value->>1)::bigint, 0, %lld:downloads_extra
FROM jsonb_array_elements(%s:pairs::jsonb)
ON CONFLICT (assignment_id, asset_id) DO UPDATE SET
    downloads_extra = allowance.downloads_extra + excluded.downloads_extra

-- The ids of the packs that an assignment gives, as a text.
-- part: packs_of_a
-- dialect: sqlite3
CASE WHEN a.content = 'live' THEN (
    SELECT group_concat(pack_id, ',') FROM (
        SELECT pack_id FROM mapping_pack WHERE mapping_id = a.mapping_id ORDER BY position
    )
) END

-- part: packs_of_a
-- dialect: pgsql
CASE WHEN a.content = 'live' THEN (
    SELECT string_agg(pack_id::text, ',' ORDER BY position)
    FROM mapping_pack WHERE mapping_id = a.mapping_id
) END

-- With the number of license keys that it waits for (NULL if it has none and never will), and whether it gives
-- links, so that neither is queried in vain.
-- part: assignment_columns
a.id, a.order_id, a.storefront_product_id, a.storefront_variant_id, a.title, a.quantity,
a.status, a.mapping_id, m.download_type, a.expires_at, a.created_at, m.is_active, m.fresh_downloads,
(SELECT SUM(c.wanted - c.assigned) FROM license_claim c WHERE c.assignment_id = a.id) AS license_keys,
COALESCE(m.download_limit, a.download_limit) AS download_limit, {{packs_of_a}} AS packs,
COALESCE((SELECT 1 FROM mapping_link WHERE a.content = 'live' AND mapping_id = a.mapping_id LIMIT 1),
    (SELECT 1 FROM assignment_link WHERE assignment_id = a.id LIMIT 1)) AS has_links

-- name: assignment_of_order
SELECT {{assignment_columns}}
FROM assignment a JOIN mapping m ON m.id = a.mapping_id
WHERE a.order_id = %lld AND a.id = %lld

-- name: assignment_list
SELECT {{assignment_columns}}
FROM assignment a JOIN mapping m ON m.id = a.mapping_id
WHERE a.order_id = %lld AND +a.id < %lld:before
ORDER BY +a.id DESC LIMIT %lld

-- The following statements read a whole page at once, by a list of the ids of its orders or
-- assignments.

-- Assignments are found first, in a query of their own. PostgreSQL overestimates their number, and would begin
-- with the joined tables, or scan an index in their order.

-- name: assignments_of_orders
WITH a_rows AS MATERIALIZED (SELECT * FROM assignment WHERE order_id {{in_given}})
SELECT {{assignment_columns}},
    CASE WHEN %lld:with_notes = 1 THEN m.note END AS note
FROM a_rows a JOIN mapping m ON m.id = a.mapping_id
ORDER BY a.id

-- How many assignments each order has, and when the last access ends; NULL: never.
-- name: assignments_count
SELECT +order_id AS order_id, COUNT(*) AS assignments,
    CASE WHEN MIN(COALESCE(expires_at, 0)) > 0 THEN MAX(expires_at) END AS latest_end
FROM assignment WHERE order_id {{in_given}}
GROUP BY +order_id

-- The assignments whose content is read: the given assignments, or all of the given orders. The newest come
-- first.
-- part: a_given
WITH a_rows AS MATERIALIZED (
    SELECT id, mapping_id, content, -id AS turn FROM assignment WHERE id {{in_given}}
)

-- part: a_of_orders
WITH a_rows AS MATERIALIZED (
    SELECT id, mapping_id, content, -order_id AS turn FROM assignment WHERE order_id {{in_given}}
)

-- Their files except those of packs: the mapping's own files, or the pinned files. They are counted before
-- anything else of them is read. The caller puts them in order.
-- part: files_of_a_rows
SELECT f_rows.assignment_id, f_rows.position, s.id, s.filename, s.title, s.status, s.sha256,
    s.size, s.updated_at, COALESCE(w.downloads_used, 0) AS downloads_used,
    COALESCE(w.downloads_extra, 0) AS downloads_extra, COALESCE(w.version, '') AS version
FROM (
    SELECT a_rows.turn, a_rows.id AS assignment_id, mf.asset_id, mf.position
    FROM a_rows CROSS JOIN mapping_file mf
    WHERE a_rows.content = 'live' AND mf.mapping_id = a_rows.mapping_id
    UNION ALL
    SELECT a_rows.turn, a_rows.id, af.asset_id, af.position
    FROM a_rows CROSS JOIN assignment_file af
    WHERE a_rows.content = 'pinned' AND af.assignment_id = a_rows.id
    ORDER BY 1, 2, 4 LIMIT %lld
) f_rows
JOIN asset s ON s.id = f_rows.asset_id
LEFT JOIN allowance w
    ON w.assignment_id = f_rows.assignment_id AND w.asset_id = f_rows.asset_id

-- Links are counted, one assignment after the other. An assignment has at most 250 links, so with 250 rows
-- beyond the limit the last counted assignment is complete. Without a limit SQLite would ignore the subquery's
-- order.
-- part: links_of_a_rows
-- dialect: sqlite3
, limit_rows (n) AS (SELECT %lld:limit)
SELECT f_rows.assignment_id, l.id, l.title, l.url
FROM (
    SELECT * FROM (
        SELECT turn_rows.turn, turn_rows.id AS assignment_id, ml.link_id, ml.position
        FROM (
            SELECT turn, id, mapping_id FROM a_rows WHERE content = 'live'
            ORDER BY turn, id LIMIT -1
        ) turn_rows CROSS JOIN mapping_link ml
        WHERE ml.mapping_id = turn_rows.mapping_id
        LIMIT (SELECT n + 250 FROM limit_rows)
    ) live_rows
    UNION ALL
    SELECT * FROM (
        SELECT turn_rows.turn, turn_rows.id, al.link_id, al.position
        FROM (
            SELECT turn, id FROM a_rows WHERE content = 'pinned' ORDER BY turn, id LIMIT -1
        ) turn_rows CROSS JOIN assignment_link al
        WHERE al.assignment_id = turn_rows.id
        LIMIT (SELECT n + 250 FROM limit_rows)
    ) pinned_rows
    ORDER BY 1, 2, 4 LIMIT (SELECT n FROM limit_rows)
) f_rows
JOIN link l ON l.id = f_rows.link_id
ORDER BY f_rows.turn, f_rows.assignment_id, f_rows.position

-- part: links_of_a_rows
-- dialect: pgsql
SELECT f_rows.assignment_id, l.id, l.title, l.url
FROM (
    SELECT turn_rows.turn, turn_rows.id AS assignment_id, place_rows.link_id, place_rows.position
    FROM (SELECT * FROM a_rows ORDER BY turn, id) turn_rows CROSS JOIN LATERAL (
        SELECT link_id, position FROM mapping_link
        WHERE turn_rows.content = 'live' AND mapping_id = turn_rows.mapping_id
        UNION ALL
        SELECT link_id, position FROM assignment_link
        WHERE turn_rows.content = 'pinned' AND assignment_id = turn_rows.id
        ORDER BY 2
    ) place_rows
    ORDER BY 1, 2, 4 LIMIT %lld
) f_rows
JOIN link l ON l.id = f_rows.link_id
ORDER BY f_rows.turn, f_rows.assignment_id, f_rows.position

-- Keys are read one assignment after the other, up to the limit, each with the data key.
-- part: license_keys_of_a_rows
-- dialect: sqlite3
SELECT assignment_id, tag_id, license_key,
    COALESCE((SELECT sealed FROM data_key WHERE data_key.id = 1), '') AS data_key
FROM (
    SELECT turn_rows.turn, k.assignment_id, k.id, k.tag_id, k.license_key
    FROM (SELECT turn, id FROM a_rows ORDER BY turn, id LIMIT -1) turn_rows CROSS JOIN license_key k
    WHERE k.assignment_id = turn_rows.id AND +k.withdrawn_at IS NULL
    LIMIT %lld
)
ORDER BY turn, assignment_id, id

-- part: license_keys_of_a_rows
-- dialect: pgsql
SELECT k.assignment_id, k.tag_id, k.license_key,
    COALESCE((SELECT sealed FROM data_key WHERE data_key.id = 1), '') AS data_key
FROM (SELECT turn, id FROM a_rows ORDER BY turn, id) turn_rows CROSS JOIN LATERAL (
    SELECT id, assignment_id, tag_id, license_key FROM license_key
    WHERE assignment_id = turn_rows.id AND +withdrawn_at IS NULL ORDER BY id
) k
ORDER BY turn_rows.turn, turn_rows.id, k.id LIMIT %lld

-- name: files_of_assignments
{{a_given}}
{{files_of_a_rows}}

-- name: files_of_orders
{{a_of_orders}}
{{files_of_a_rows}}

-- name: links_of_assignments
{{a_given}}
{{links_of_a_rows}}

-- name: links_of_orders
{{a_of_orders}}
{{links_of_a_rows}}

-- name: license_keys_of_assignments
{{a_given}}
{{license_keys_of_a_rows}}

-- name: license_keys_of_orders
{{a_of_orders}}
{{license_keys_of_a_rows}}

-- The files of packs, which are read once for all assignments that give the pack: a text of ids for each.
-- name: pack_lists
-- dialect: sqlite3
SELECT given_rows.value, (
    SELECT group_concat(asset_id, ',') FROM (
        SELECT asset_id FROM pack_file WHERE pack_id = given_rows.value ORDER BY position
    )
)
FROM json_each(%ids) given_rows

-- name: pack_lists
-- dialect: pgsql
SELECT given_rows.id, (
    SELECT string_agg(asset_id::text, ',' ORDER BY position)
    FROM pack_file WHERE pack_id = given_rows.id
)
FROM unnest(%ids) given_rows (id)

-- name: files_by_id
SELECT 0, 0, s.id, s.filename, s.title, s.status, s.sha256, s.size, s.updated_at, 0, 0, ''
FROM asset s
WHERE s.id {{in_given}}

-- Which of the files are in objects.
-- name: files_in_objects
SELECT s.id, b.missing_at FROM asset s JOIN blob b ON b.sha256 = s.sha256
WHERE s.id {{in_given}} AND b.object IS NOT NULL

-- name: allowances_of_assignments
SELECT assignment_id, asset_id, downloads_used, downloads_extra, version
FROM allowance WHERE assignment_id {{in_given}}
