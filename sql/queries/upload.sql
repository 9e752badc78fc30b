-- An upload expires by the database's clock: a node with a wrong clock must not end uploads of others.

-- part: upload_columns
id, shop_id, status, filename, title, content_type, category_id, size, expected_sha256, sha256,
asset_id, begun_by, returns_to, replaces, note, notify, modified, written, arrived, write_id, created_at, expires_at, reserved,
updated_at,
CASE WHEN expires_at <= {{now}} THEN 1 ELSE 0 END AS expired

-- Adds an open upload, unless the shop has as many as it may have, or its quota (0: none) has no room for the
-- size. The shop must be locked.
-- name: upload_insert
INSERT INTO upload (id, shop_id, status, filename, title, content_type, category_id, size,
    expected_sha256, begun_by, returns_to, replaces, note, notify, modified, created_at, updated_at, expires_at)
SELECT %s:upload_id, s.id, 'open', %s:filename, %s:title, %s:content_type, %lld:category_id?0, %lld:size?-1,
    %s:expected_sha256, %s:begun_by, %s:returns_to, %lld:replaces?0, %s:note, %lld:notify,
    %lld:modified?0,
    %lld:created_at, %lld:created_at, {{now}} + %lld:expires_at
FROM shop s
WHERE s.id = %lld:shop_id
    AND (SELECT count(*) FROM upload u
        WHERE u.shop_id = s.id AND u.status = 'open' AND u.expires_at > {{now}}) < %lld:max_open
    AND (%lld:has_quota = 0 OR {{bytes_taken}} + %lld:wanted <= %lld:quota)
RETURNING expires_at

-- name: upload_open_of_shop
SELECT id FROM upload WHERE shop_id = %lld AND status = 'open' AND expires_at > {{now}} ORDER BY id

-- Those that members have begun, without those that wait for a form. A shop has few open uploads.
-- name: upload_begun_of_shop
SELECT {{upload_columns}} FROM upload
WHERE shop_id = %lld AND status = 'open' AND expires_at > {{now}} AND begun_by IS NOT NULL AND returns_to IS NULL
ORDER BY id

-- name: upload_reserve
UPDATE upload SET reserved = %lld:size, updated_at = {{later}}
WHERE id = %s AND {{is_open}} AND size IS NULL AND expires_at > {{now}}

-- name: upload_by_id
SELECT {{upload_columns}}, (SELECT s.blocked_at FROM shop s WHERE s.id = upload.shop_id) AS shop_blocked_at,
    (SELECT m.id FROM meter m WHERE m.id = upload.writer) AS live_writer
FROM upload WHERE id = %s

-- The next statement sees what a writer that has just ended has left.
-- name: upload_lock
SELECT 1 FROM upload WHERE id = %s {{for_update}}

-- name: upload_take
UPDATE upload SET writer = %s:writer, write_id = %s:write_id, written = %s:written, arrived = %lld:arrived
WHERE id = %s

-- Nothing is changed once another write has begun.
-- name: upload_record
UPDATE upload SET written = %s:written, arrived = %lld:arrived
WHERE id = %s AND write_id = %s AND {{is_open}}

-- name: upload_release
UPDATE upload SET writer = NULL, written = %s:written, arrived = %lld:arrived,
    reserved = CASE WHEN reserved > %lld:arrived THEN %lld:arrived ELSE reserved END
WHERE id = %s AND write_id = %s

-- name: upload_set_size
UPDATE upload SET size = %lld, updated_at = {{later}}
WHERE id = %s AND {{is_open}} AND size IS NULL AND expires_at > {{now}}

-- name: upload_finish
UPDATE upload SET sha256 = %s, size = %lld, updated_at = {{later}}, writer = NULL, written = NULL
WHERE id = %s AND {{is_open}} AND (size IS NULL OR size = %lld)
    AND (%s:write_id IS NULL OR write_id = %s:write_id)

-- What a form tells of its file.
-- name: upload_describe
UPDATE upload SET filename = %s:filename, title = %s:title, content_type = %s:content_type, updated_at = {{later}}
WHERE id = %s AND {{is_open}}

-- name: upload_abort
UPDATE upload SET status = 'aborted', updated_at = {{later}}
WHERE id = %s AND {{is_open}} AND expires_at > {{now}} AND {{of_version}}

-- If two requests complete an upload at once, the second waits here and then finds nothing to do.
-- name: upload_complete
UPDATE upload SET status = 'completed', updated_at = {{later}}
WHERE id = %s AND shop_id = %lld AND {{is_open}} AND expires_at > {{now}} AND {{of_version}}
RETURNING {{upload_columns}}

-- name: upload_set_asset
UPDATE upload SET asset_id = %lld, updated_at = {{later}} WHERE id = %s

-- name: upload_expire
UPDATE upload SET status = 'aborted', updated_at = {{later}}
WHERE id IN (SELECT id FROM upload WHERE status = 'open' AND expires_at <= {{now}}
    ORDER BY expires_at LIMIT %lld)
RETURNING sha256, written

-- The partial files, of those with the ids of a JSON array, that are no longer needed, because their upload or
-- job is over or gone. A cancelled job's worker removes its own file.
-- name: upload_over
-- dialect: sqlite3
SELECT u.id FROM upload u
WHERE u.id IN (SELECT value FROM json_each(%s:ids)) AND u.status <> 'open'
    AND NOT EXISTS (SELECT 1 FROM job j
        WHERE j.asset_id = u.asset_id AND j.upload_id = u.id AND j.finished_at IS NULL)
UNION ALL
SELECT id FROM job
WHERE id IN (SELECT value FROM json_each(%s:ids)) AND status IN ('succeeded', 'failed')
UNION ALL
SELECT value FROM json_each(%s:ids)
WHERE (SELECT u.id FROM upload u WHERE u.id = json_each.value) IS NULL
    AND (SELECT j.id FROM job j WHERE j.id = json_each.value) IS NULL

-- name: upload_over
-- dialect: pgsql
SELECT u.id FROM upload u
WHERE u.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%s:ids::jsonb))) AND u.status <> 'open'
    AND NOT EXISTS (SELECT 1 FROM job j
        WHERE j.asset_id = u.asset_id AND j.upload_id = u.id AND j.finished_at IS NULL)
UNION ALL
SELECT id FROM job
WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(%s:ids::jsonb))) AND status IN ('succeeded', 'failed')
UNION ALL
SELECT g.id FROM (SELECT jsonb_array_elements_text(%s:ids::jsonb) COLLATE "C") g (id)
WHERE (SELECT u.id FROM upload u WHERE u.id = g.id) IS NULL
    AND (SELECT j.id FROM job j WHERE j.id = g.id) IS NULL
