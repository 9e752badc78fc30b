-- Items that need attention. Each statement looks at a number of the newest rows, and leaves out solved ones.
-- Other tables are read by subqueries for one value, so that PostgreSQL has no choice of plans.

-- What was assigned live of mappings that have the asset, which is looked up first.
-- part: of_asset_live
-- dialect: sqlite3
mapping_file f CROSS JOIN assignment s
            WHERE f.asset_id = j_rows.asset_id AND s.mapping_id = f.mapping_id AND s.content = 'live'

-- part: of_asset_live
-- dialect: pgsql
mapping_file f CROSS JOIN LATERAL (
                SELECT 1 FROM assignment s WHERE s.mapping_id = f.mapping_id AND s.content = 'live' LIMIT 20) s_rows
            WHERE f.asset_id = j_rows.asset_id

-- Failed imports, except for assets that were deleted, or that another job has filled since.
-- name: imports_failed
SELECT j_rows.id, j_rows.asset_id,
    (SELECT a.filename FROM asset a WHERE a.id = j_rows.asset_id AND +a.deleted_at IS NULL) AS filename,
    j_rows.error_code, j_rows.error_message, j_rows.finished_at,
    CASE WHEN (SELECT a.status FROM asset a WHERE a.id = j_rows.asset_id) = 'ready' THEN 0
        ELSE (SELECT count(*) FROM (SELECT 1 AS one FROM {{of_asset_live}} LIMIT 20) w_rows) END AS waiting
FROM (
    SELECT id, asset_id, error_code, error_message, finished_at FROM job
    WHERE shop_id = %lld AND status = 'failed' AND {{type_shown}} ORDER BY id DESC LIMIT %lld
) j_rows
WHERE j_rows.asset_id IS NOT NULL AND j_rows.finished_at > %lld:since
    AND (SELECT count(*) FROM job l WHERE l.asset_id = j_rows.asset_id AND l.id || '' > j_rows.id) = 0
ORDER BY j_rows.id DESC

-- Emails that did not arrive, except for orders that have a newer email, or are closed.
-- name: emails_undelivered
SELECT (SELECT o.storefront_order_id FROM orders o
        WHERE o.id = e_rows.order_id AND o.access_status IN ('active', 'held')) AS storefront_order_id,
    CASE WHEN e_rows.bounced_at IS NOT NULL THEN 'bounced' ELSE e_rows.status END AS status, e_rows.recipient,
    e_rows.last_error, COALESCE(e_rows.bounced_at, e_rows.created_at) AS at
FROM (
    SELECT id, order_id, status, recipient, last_error, bounced_at, created_at,
        CASE WHEN help_id IS NULL THEN 0 ELSE 1 END AS helps FROM email
    WHERE shop_id = %lld AND (status IN ('failed', 'no_recipient') OR bounced_at IS NOT NULL)
    ORDER BY id DESC LIMIT %lld
) e_rows
WHERE e_rows.created_at > %lld:since
    AND e_rows.id = (SELECT l.id FROM email l WHERE l.order_id = e_rows.order_id
        AND CASE WHEN l.help_id IS NULL THEN 0 ELSE 1 END = e_rows.helps ORDER BY l.id DESC LIMIT 1)
ORDER BY e_rows.id DESC

-- name: license_tags_low
SELECT t_rows.id, t_rows.name, t_rows.available, t_rows.low_stock_threshold
FROM (
    SELECT id, name, available, low_stock_threshold FROM license_key_tag
    WHERE shop_id = %lld AND deleted_at IS NULL AND low_stock_threshold >= 0 ORDER BY id DESC LIMIT %lld
) t_rows
WHERE t_rows.available <= t_rows.low_stock_threshold
ORDER BY t_rows.id DESC

-- Tags of which purchases wait for keys, and how many do, up to 20.
-- name: license_tags_awaited
SELECT q_rows.id, q_rows.name, q_rows.waiting
FROM (
    SELECT t_rows.id, t_rows.name,
        (SELECT count(*) FROM (SELECT 1 AS one FROM license_claim c
            WHERE c.tag_id = t_rows.id AND c.assigned < c.wanted LIMIT 20) c_rows) AS waiting
    FROM (
        SELECT id, name FROM license_key_tag
        WHERE shop_id = %lld AND deleted_at IS NULL ORDER BY id DESC LIMIT %lld
    ) t_rows
) q_rows
WHERE q_rows.waiting > 0
ORDER BY q_rows.id DESC

-- Orders whose address was probably mistyped, except for closed ones, those that have another address now, and
-- those whose page was opened: somebody got the email.
-- name: addresses_doubted
SELECT o_rows.storefront_order_id, o_rows.likely_typo, o_rows.created_at
FROM (
    SELECT id, storefront_order_id, access_status, likely_typo, {{recipient:orders}} AS address, created_at FROM orders
    WHERE shop_id = %lld AND likely_typo IS NOT NULL ORDER BY id DESC LIMIT %lld
) o_rows
WHERE o_rows.created_at > %lld:since AND o_rows.access_status IN ('active', 'held')
    AND o_rows.address = o_rows.likely_typo
    AND (SELECT max(v.day) FROM order_visit v WHERE v.order_id = o_rows.id) IS NULL
ORDER BY o_rows.id DESC
