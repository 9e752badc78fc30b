-- part: tag_columns
id, name, available, assigned, low_stock_threshold, created_at, updated_at, reclaims

-- part: locked_columns
id, available, low_stock_threshold, reclaims, CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END AS is_deleted

-- name: license_tag_insert
INSERT INTO license_key_tag (shop_id, name, low_stock_threshold, reclaims, available, assigned,
    created_at, updated_at)
VALUES (%lld:shop_id, %s:name, %lld:low_stock_threshold?-1, COALESCE(%lld:reclaims?-1, 0), 0, 0, %lld:now,
    %lld:now)
RETURNING {{tag_columns}}

-- name: license_tag_by_id
SELECT {{tag_columns}} FROM license_key_tag
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL

-- name: license_tag_page
SELECT {{tag_columns}} FROM license_key_tag
WHERE shop_id = %lld AND id < %lld:before AND deleted_at IS NULL
ORDER BY id DESC LIMIT %lld

-- name: license_tag_change
UPDATE license_key_tag SET name = COALESCE(%s:name, name),
    low_stock_threshold = CASE WHEN %lld:set_threshold = 1 THEN %lld:threshold?-1 ELSE low_stock_threshold END,
    reclaims = COALESCE(%lld:reclaims?-1, reclaims), updated_at = {{later}}
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL AND {{of_version}}
RETURNING {{tag_columns}}

-- Locks a tag, so that its keys are taken and added by one transaction after the other.  Inserting a row
-- that refers to the tag does not wait.
-- name: license_tag_lock
SELECT {{locked_columns}} FROM license_key_tag WHERE id = %lld AND +deleted_at IS NULL {{for_no_key_update}}

-- Waits also for transactions that are about to refer to the tag.
-- name: license_tag_lock_whole
SELECT {{tag_columns}} FROM license_key_tag
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL
{{for_update}}

-- name: license_tag_delete
UPDATE license_key_tag SET deleted_at = %lld:now WHERE id = %lld

-- name: license_tag_count
UPDATE license_key_tag SET available = available + %lld:available, assigned = assigned + %lld:assigned
WHERE id = %lld

-- The shop's staff are told that the tag's stock is low, at most once in a given time.
-- name: license_tag_warn
UPDATE license_key_tag SET warned_at = %lld:now
WHERE id = %lld AND (warned_at IS NULL OR warned_at < %lld:warned_before)
RETURNING shop_id, name, available, low_stock_threshold

-- Which of a JSON array's ids are the shop's; they can't be deleted until the transaction ends.
-- name: license_tag_known
SELECT id FROM license_key_tag
WHERE +shop_id = %lld AND id {{in_given}}
    AND +deleted_at IS NULL
{{for_key_share}}

-- name: license_tag_mappings
SELECT t.mapping_id FROM mapping_license_key_tag t CROSS JOIN mapping m
WHERE t.tag_id = %lld:id AND m.id = t.mapping_id AND +m.deleted_at IS NULL
ORDER BY t.mapping_id LIMIT %lld

-- The orders that wait for keys of a tag, or will once they are approved.
-- name: license_tag_orders
SELECT o.storefront_order_id
FROM license_claim c JOIN assignment a ON a.id = c.assignment_id JOIN orders o ON o.id = a.order_id
WHERE c.tag_id = %lld:id AND c.assigned < c.wanted
    AND a.status = 'active' AND o.access_status IN ('active', 'held')
ORDER BY c.assignment_id LIMIT %lld

-- How many orders wait for keys of each tag, counted up to a limit.
-- name: license_orders_waiting
SELECT t.id, (SELECT count(*) FROM (
        SELECT c.assignment_id
        FROM license_claim c JOIN assignment a ON a.id = c.assignment_id JOIN orders o ON o.id = a.order_id
        WHERE c.tag_id = t.id AND c.assigned < c.wanted
            AND a.status = 'active' AND o.access_status IN ('active', 'held')
        ORDER BY c.assignment_id LIMIT %lld) waiting_rows) AS owed
FROM license_key_tag t WHERE t.id {{in_given}}

-- name: license_keys_insert
-- dialect: sqlite3
INSERT INTO license_key (tag_id, created_at, license_key)
SELECT %lld:tag_id, %lld:now, value FROM json_each(%s:keys) WHERE true ORDER BY key
ON CONFLICT (tag_id, license_key) DO NOTHING

-- name: license_keys_insert
-- dialect: pgsql
INSERT INTO license_key (tag_id, created_at, license_key)
SELECT %lld:tag_id, %lld:now, value FROM jsonb_array_elements_text(%s:keys::jsonb) WITH ORDINALITY ORDER BY ordinality
ON CONFLICT (tag_id, license_key) DO NOTHING

-- Locks the tags of given mappings and those that the order waits for already, before the order
-- refers to any, always in the same sequence: else two orders and the deletion of a tag could deadlock.
-- name: license_tags_of_order
-- dialect: sqlite3
SELECT id FROM license_key_tag
WHERE +deleted_at IS NULL AND id IN (
    SELECT tag_id FROM mapping_license_key_tag
    WHERE mapping_id {{in_given}}
    UNION ALL
    SELECT c.tag_id FROM assignment a JOIN license_claim c ON c.assignment_id = a.id
    WHERE a.order_id = %lld AND a.status = 'active' AND +c.assigned < c.wanted)

-- name: license_tags_of_order
-- dialect: pgsql
SELECT id FROM license_key_tag
WHERE +deleted_at IS NULL AND id = ANY (ARRAY(
    SELECT tag_id FROM mapping_license_key_tag
    WHERE mapping_id {{in_given}}
    UNION ALL
    SELECT c.tag_id FROM assignment a JOIN license_claim c ON c.assignment_id = a.id
    WHERE a.order_id = %lld AND a.status = 'active' AND +c.assigned < c.wanted))
ORDER BY id FOR NO KEY UPDATE

-- Only locked tags, without a tag that the mapping got a moment ago.
-- name: license_claims_insert
INSERT INTO license_claim (assignment_id, wanted, assigned, tag_id, shop_id)
SELECT %lld:assignment_id, %lld:wanted, 0, tag_id, (SELECT shop_id FROM mapping WHERE id = %lld:mapping_id)
FROM mapping_license_key_tag
WHERE mapping_id = %lld AND tag_id {{in_given}}

-- Revoked orders may still wait when a tag is deleted; they get no more keys.
-- name: license_claims_close
UPDATE license_claim SET wanted = assigned WHERE tag_id = %lld AND assigned < wanted

-- name: license_claims_of_order
SELECT DISTINCT c.tag_id
FROM orders o JOIN assignment a ON a.order_id = o.id JOIN license_claim c ON c.assignment_id = a.id
WHERE o.id = %lld AND o.access_status = 'active' AND a.status = 'active' AND +c.assigned < c.wanted
ORDER BY c.tag_id

-- Assigns keys to claims. Claims and available keys share one numbering: a claim has the number of the first
-- key that it gets, so a key belongs to the last claim at or before its own number.
-- part: pairs
, place_rows AS (
    SELECT assignment_id, 0 AS key_id,
        CAST(1 + sum(missing) OVER (ORDER BY assignment_id) - missing AS BIGINT) AS position
    FROM waiting_rows
    UNION ALL
    SELECT 0, key_rows.id, row_number() OVER (ORDER BY key_rows.id)
    FROM (SELECT id FROM license_key WHERE tag_id = %lld AND assignment_id IS NULL ORDER BY id
        LIMIT (SELECT CAST(COALESCE(sum(missing), 0) AS BIGINT) FROM waiting_rows)) key_rows
)
SELECT key_id, receiver
FROM (
    SELECT key_id, max(assignment_id) OVER (ORDER BY position, key_id) AS receiver
    FROM place_rows
) given_rows
WHERE key_id <> 0

-- name: license_pairs_of_tag
WITH waiting_rows AS (
    SELECT c.assignment_id, c.wanted - c.assigned AS missing
    FROM license_claim c JOIN assignment a ON a.id = c.assignment_id
    JOIN orders o ON o.id = a.order_id
    WHERE c.tag_id = %lld AND c.assigned < c.wanted
        AND a.status = 'active' AND o.access_status = 'active'
    ORDER BY c.assignment_id LIMIT %lld
) {{pairs}}

-- CROSS JOIN keeps SQLite from reading every claim that waits for the tag.
-- name: license_pairs_of_order
WITH waiting_rows AS (
    SELECT c.assignment_id, c.wanted - c.assigned AS missing
    FROM orders o CROSS JOIN assignment a CROSS JOIN license_claim c
    WHERE o.id = %lld AND o.access_status = 'active'
        AND a.order_id = o.id AND a.status = 'active'
        AND c.assignment_id = a.id AND +c.tag_id = %lld AND +c.assigned < c.wanted
    ORDER BY c.assignment_id LIMIT %lld
) {{pairs}}

-- The pairs are passed back as one JSON object, each key's id with its assignment's. PostgreSQL can't know how
-- few they are, and would read the whole stock to join them in one statement.
-- name: license_keys_give
-- dialect: sqlite3
UPDATE license_key SET assigned_at = %lld:now, assignment_id = CAST(json_each.value AS INTEGER)
FROM json_each(%s:pairs) WHERE license_key.id = CAST(json_each.key AS INTEGER)

-- name: license_keys_give
-- dialect: pgsql
UPDATE license_key SET assigned_at = %lld:now, assignment_id = pair.value::bigint
FROM jsonb_each_text(%s:pairs::jsonb) pair WHERE license_key.id = pair.key::bigint

-- Every claim exists, so none is inserted; with an upsert PostgreSQL finds each by its key.
-- name: license_claims_count
-- dialect: sqlite3
INSERT INTO license_claim (assignment_id, tag_id, wanted, assigned)
SELECT CAST(value AS INTEGER), %lld:tag_id, 0, count(*) FROM json_each(%s:pairs) WHERE true GROUP BY 1
ON CONFLICT (assignment_id, tag_id) DO UPDATE SET
    assigned = license_claim.assigned + excluded.assigned

-- name: license_claims_count
-- dialect: pgsql
INSERT INTO license_claim (assignment_id, tag_id, wanted, assigned)
SELECT value::bigint, %lld:tag_id, 0, count(*) FROM jsonb_each_text(%s:pairs::jsonb) GROUP BY 1
ON CONFLICT (assignment_id, tag_id) DO UPDATE SET
    assigned = license_claim.assigned + excluded.assigned

-- An order that another transaction has locked is moved by that transaction, which may wait for this tag.
-- name: orders_touch_given
-- dialect: sqlite3
UPDATE orders SET updated_at = {{later}}
WHERE id IN (SELECT a.order_id FROM assignment a
    WHERE a.id IN (SELECT CAST(value AS INTEGER) FROM json_each(%s:pairs)))

-- name: orders_touch_given
-- dialect: pgsql
UPDATE orders SET updated_at = {{later}}
WHERE id = ANY (ARRAY(SELECT o.id FROM orders o WHERE o.id = ANY (ARRAY(
    SELECT a.order_id FROM assignment a
    WHERE a.id = ANY (ARRAY(SELECT value::bigint FROM jsonb_each_text(%s:pairs::jsonb)))))
    FOR NO KEY UPDATE SKIP LOCKED))

-- Their jobs late_email look at once whether everything is there now.
-- name: license_wake_late
-- dialect: sqlite3
UPDATE job SET due_at = %lld:now
WHERE type = 'late_email' AND status = 'queued' AND due_at > %lld:now
    AND email_id IN (SELECT e.id FROM email e WHERE e.order_id IN (SELECT a.order_id FROM assignment a
        WHERE a.id IN (SELECT CAST(value AS INTEGER) FROM json_each(%s:pairs))))

-- name: license_wake_late
-- dialect: pgsql
UPDATE job SET due_at = %lld:now
WHERE id = ANY (ARRAY(SELECT j.id FROM job j
    WHERE j.type = 'late_email' AND j.status = 'queued' AND j.due_at > %lld:now
        AND j.email_id = ANY (ARRAY(SELECT e.id FROM email e WHERE e.order_id = ANY (ARRAY(
            SELECT a.order_id FROM assignment a
            WHERE a.id = ANY (ARRAY(SELECT value::bigint FROM jsonb_each_text(%s:pairs::jsonb)))))))
    ORDER BY j.id FOR NO KEY UPDATE))

-- One entry for each order.
-- name: license_timeline_insert
-- dialect: sqlite3
INSERT INTO order_timeline (action, key_id, created_at, order_id, assignment_ids, details)
SELECT 'license_keys_assigned', %s:key_id, %lld:now, order_id, json_group_array(assignment_id),
    json_object('license_keys', sum(n))
FROM (
    SELECT (SELECT a.order_id FROM assignment a WHERE a.id = assignment_id) AS order_id,
        assignment_id, n
    FROM (
        SELECT CAST(value AS INTEGER) AS assignment_id, count(*) AS n
        FROM json_each(%s:pairs) GROUP BY 1 ORDER BY 1
    ) receiver_rows
) given_rows
GROUP BY order_id

-- name: license_timeline_insert
-- dialect: pgsql
INSERT INTO order_timeline (action, key_id, created_at, order_id, assignment_ids, details)
SELECT 'license_keys_assigned', %s:key_id, %lld:now, order_id,
    jsonb_agg(assignment_id ORDER BY assignment_id)::text,
    jsonb_build_object('license_keys', sum(n))::text
FROM (
    SELECT (SELECT a.order_id FROM assignment a WHERE a.id = assignment_id) AS order_id,
        assignment_id, n
    FROM (
        SELECT value::bigint AS assignment_id, count(*) AS n
        FROM jsonb_each_text(%s:pairs::jsonb) GROUP BY 1
    ) receiver_rows
) given_rows
GROUP BY order_id

-- The keys of a tag, the newest first, in the requested states (1: wanted, 0: not), each from an index of its
-- own.
-- name: license_key_page
SELECT k.id, k.license_key,
    COALESCE((SELECT sealed FROM data_key WHERE data_key.id = 1), '') AS data_key,
    k.assignment_id, k.assigned_at, k.withdrawn_at, k.created_at,
    (SELECT o.storefront_order_id FROM assignment a JOIN orders o ON o.id = a.order_id
        WHERE a.id = k.assignment_id) AS storefront_order_id,
    (SELECT COALESCE({{recipient:o}}, {{customer_number:c}}) FROM assignment a JOIN orders o ON o.id = a.order_id
        JOIN customer c ON c.id = o.customer_id WHERE a.id = k.assignment_id) AS customer
FROM (
    SELECT * FROM (SELECT * FROM license_key
        WHERE tag_id = %lld AND id < %lld:before AND assignment_id IS NULL AND %lld:available = 1
        ORDER BY id DESC LIMIT %lld) available_rows
    UNION ALL
    SELECT * FROM (SELECT * FROM license_key
        WHERE tag_id = %lld AND id < %lld:before AND assignment_id IS NOT NULL AND withdrawn_at IS NULL
            AND %lld:assigned = 1
        ORDER BY id DESC LIMIT %lld) assigned_rows
    UNION ALL
    SELECT * FROM (SELECT * FROM license_key
        WHERE tag_id = %lld AND id < %lld:before AND withdrawn_at IS NOT NULL AND %lld:withdrawn = 1
        ORDER BY id DESC LIMIT %lld) withdrawn_rows
) k
ORDER BY k.id DESC LIMIT %lld

-- name: license_key_by_text
SELECT id FROM license_key WHERE tag_id = %lld AND license_key = %s

-- The newest tags, and the data key that seals their keys.
-- name: license_tags_searched
SELECT id, (SELECT sealed FROM data_key WHERE data_key.id = 1) AS data_key FROM license_key_tag
WHERE shop_id = %lld AND deleted_at IS NULL
ORDER BY id DESC LIMIT %lld

-- The keys with given sealed texts, by their tags. With OFFSET PostgreSQL looks each of them up.
-- part: found_columns
k.id, k.tag_id, t.name AS tag, k.assignment_id, k.withdrawn_at, o.storefront_order_id

-- name: license_keys_by_text
-- dialect: sqlite3
SELECT {{found_columns}}
FROM json_each(%s:pairs) CROSS JOIN license_key k JOIN license_key_tag t ON t.id = k.tag_id
LEFT JOIN assignment a ON a.id = k.assignment_id LEFT JOIN orders o ON o.id = a.order_id
WHERE k.tag_id = CAST(json_each.key AS INTEGER) AND k.license_key = json_each.value
ORDER BY k.id DESC LIMIT %lld

-- name: license_keys_by_text
-- dialect: pgsql
SELECT {{found_columns}}
FROM jsonb_each_text(%s:pairs::jsonb) pair CROSS JOIN LATERAL (
    SELECT id, tag_id, assignment_id, withdrawn_at FROM license_key
    WHERE tag_id = pair.key::bigint AND license_key = pair.value OFFSET 0
) k
JOIN license_key_tag t ON t.id = k.tag_id
LEFT JOIN assignment a ON a.id = k.assignment_id LEFT JOIN orders o ON o.id = a.order_id
ORDER BY k.id DESC LIMIT %lld

-- The tag is locked.
-- name: license_key_of_tag
SELECT assignment_id, withdrawn_at FROM license_key WHERE id = %lld AND +tag_id = %lld

-- name: license_key_delete
DELETE FROM license_key WHERE id = %lld

-- Locks the tags whose keys assignments have, or wait for.
-- name: license_tags_of_assignments
-- dialect: sqlite3
SELECT {{locked_columns}} FROM license_key_tag
WHERE id IN (SELECT tag_id FROM license_claim WHERE assignment_id {{in_given}})

-- name: license_tags_of_assignments
-- dialect: pgsql
SELECT {{locked_columns}} FROM license_key_tag
WHERE id = ANY (ARRAY(SELECT tag_id FROM license_claim WHERE assignment_id {{in_given}}))
ORDER BY id FOR NO KEY UPDATE

-- In the order in which an assignment shows them.
-- name: license_keys_of_assignment
SELECT id, CASE WHEN withdrawn_at IS NULL THEN 0 ELSE 1 END AS is_withdrawn FROM license_key
WHERE assignment_id = %lld AND +tag_id = %lld ORDER BY id

-- name: license_keys_free
UPDATE license_key SET assignment_id = NULL, assigned_at = NULL, withdrawn_at = NULL
WHERE id {{in_given}}

-- name: license_keys_withdraw
UPDATE license_key SET withdrawn_at = %lld?0 WHERE id {{in_given}}

-- name: license_keys_reclaim
UPDATE license_key SET assignment_id = NULL, assigned_at = NULL, withdrawn_at = NULL
WHERE assignment_id {{in_given}} AND +tag_id = %lld

-- name: license_claim_set
UPDATE license_claim SET wanted = %lld, assigned = %lld WHERE assignment_id = %lld AND tag_id = %lld

-- name: license_claims_empty
UPDATE license_claim SET assigned = 0 WHERE assignment_id {{in_given}} AND +tag_id = %lld
