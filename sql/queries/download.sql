-- A session, and when the link's first session was opened.
-- part: session_columns
s.id, s.generation, s.status, s.assignment_id, s.asset_id, s.etag, s.size, s.files, s.bytes,
(SELECT f.opened_at FROM download_session f WHERE f.id = s.id AND f.generation = 1) AS opened_at, s.idle_at

-- The link's last session, with the number of running transfers of all the link's sessions, and the bytes that
-- those of the last session have delivered so far.
-- part: session_last_columns
{{session_columns}},
    (SELECT COUNT(*) FROM download_transfer t WHERE t.session_id = s.id) AS running,
    (SELECT COALESCE(SUM(t.bytes), 0) FROM download_transfer t
        WHERE t.session_id = s.id AND t.generation = s.generation) AS running_bytes

-- part: session_last_join
LEFT JOIN download_session s
    ON s.id = %s:session_id
    AND s.generation = (SELECT MAX(l.generation) FROM download_session l WHERE l.id = %s:session_id)

-- Everything that decides about one download, except lists other than the mapping's own (download_listed): few
-- orders need those, and their tables would double the statement's time.
-- name: download_grant
SELECT o.access_status, o.undeclared, a.status AS assignment_status, a.expires_at, e.status AS asset_status, e.filename,
    e.content_type, e.sha256, e.size AS asset_size, e.updated_at,
    COALESCE(m.download_limit, a.download_limit) AS download_limit, o.page_id,
    COALESCE(w.downloads_used, 0) AS downloads_used,
    COALESCE(w.downloads_extra, 0) AS downloads_extra, COALESCE(w.version, '') AS allowance_version, m.fresh_downloads,
    o.page_replaced_at, h.blocked_at,
    CASE WHEN a.content = 'live' THEN (SELECT 1 FROM mapping_file f
        WHERE f.mapping_id = a.mapping_id AND f.asset_id = e.id) END AS is_listed, a.quantity, b.object, b.missing_at,
    e.version,
    {{session_last_columns}}
FROM assignment a
JOIN orders o ON o.id = a.order_id
JOIN shop h ON h.id = o.shop_id
JOIN mapping m ON m.id = a.mapping_id
{{session_last_join}}
JOIN asset e ON e.id = %lld:asset_id AND +e.deleted_at IS NULL
LEFT JOIN blob b ON b.sha256 = e.sha256
LEFT JOIN allowance w ON w.assignment_id = %lld AND w.asset_id = %lld
WHERE a.id = %lld:assignment_id

-- Whether a file belongs to an assignment by a pack or because it was pinned, looked up by its key in each
-- list.
-- name: download_listed
SELECT 1 FROM assignment a
WHERE a.id = %lld AND (
    (a.content = 'live' AND EXISTS (SELECT 1 FROM mapping_pack mp
        WHERE mp.mapping_id = a.mapping_id AND (SELECT pf.position FROM pack_file pf
            WHERE pf.pack_id = mp.pack_id AND pf.asset_id = %lld) IS NOT NULL))
    OR (a.content = 'pinned' AND EXISTS (SELECT 1 FROM assignment_file f
        WHERE f.assignment_id = a.id AND f.asset_id = %lld)))

-- Locks a link against its other requests, by its first session, and waits until its last session is settled.
-- It is a statement of its own, because one that waits for a row reads other rows as they were before the wait.
-- name: download_session_lock
SELECT 1 FROM download_session
WHERE id = %s AND generation IN (1, (SELECT MAX(l.generation) FROM download_session l WHERE l.id = %s))
ORDER BY generation {{for_update}}

-- name: download_session_last
SELECT {{session_last_columns}}
FROM download_session s WHERE s.id = %s
ORDER BY s.generation DESC LIMIT 1 {{for_update}}

-- Fails if there is one of this generation.
-- name: download_session_open
INSERT INTO download_session (id, generation, assignment_id, asset_id, files, etag, size, status,
    version, request_id, network, bytes, transfers, opened_at, updated_at)
VALUES (%s:id, %lld:generation, %lld:assignment_id, %lld:asset_id?0, %s:files, %s:etag, %lld:size, 'open',
    %lld:version?0, %s:request_id, %s:network, 0, 0, %lld:now, %lld:now)
ON CONFLICT (id, generation) DO UPDATE SET generation = {{failure:download_session.generation}}

-- name: download_session_resume
UPDATE download_session SET status = %s, updated_at = %lld:now, idle_at = NULL
WHERE id = %s AND generation = %lld

-- Sessions to settle together: the parameter is a JSON array of objects.
-- part: given_sessions
-- dialect: sqlite3
(SELECT value ->> 'id' AS id, value ->> 'generation' AS generation, value ->> 'status' AS status,
    value ->> 'files' AS files, value ->> 'bytes' AS bytes, value ->> 'acknowledged' AS acknowledged,
    value ->> 'handed_over' AS handed_over, value ->> 'transfers' AS transfers, value ->> 'idle_at' AS idle_at
    FROM json_each(%s:sessions)) g

-- part: given_sessions
-- dialect: pgsql
jsonb_to_recordset(%s:sessions::jsonb) g (id text COLLATE "C", generation integer, status text, files text,
    bytes bigint, acknowledged bigint, handed_over bigint, transfers bigint, idle_at bigint)

-- Locks sessions in the order of their keys. The last column but one is the number of transfers of this session
-- alone: those of the link's other sessions don't keep it open.
-- name: download_sessions_lock
SELECT {{session_columns}}, (SELECT COUNT(*) FROM download_transfer t
    WHERE t.session_id = s.id AND t.generation = s.generation) AS running, 0 AS running_bytes
FROM {{given_sessions}}
CROSS JOIN download_session s WHERE s.id = g.id AND s.generation = g.generation
ORDER BY s.id, s.generation {{for_update}}

-- name: download_sessions_settle
UPDATE download_session AS s SET status = g.status, files = g.files, bytes = s.bytes + g.bytes,
    acknowledged = s.acknowledged + g.acknowledged, handed_over = s.handed_over + g.handed_over,
    transfers = s.transfers + g.transfers, ended_at = CASE WHEN g.transfers > 0 THEN %lld:now ELSE s.ended_at END,
    updated_at = %lld:now, idle_at = g.idle_at
FROM {{given_sessions}}
WHERE s.id = g.id AND s.generation = g.generation

-- name: download_sessions_idle
SELECT s.id, s.generation FROM download_session s
WHERE s.idle_at <= %lld:now AND NOT EXISTS (SELECT 1 FROM download_transfer t
    WHERE t.session_id = s.id AND t.generation = s.generation)
ORDER BY s.idle_at LIMIT %lld

-- Sessions whose idle time lies in the future, because the clock was set back: they stay idle as long as
-- others.
-- name: download_sessions_set_back
UPDATE download_session SET idle_at = %lld:now + idle_at - updated_at, updated_at = %lld:now
WHERE idle_at > %lld:now AND updated_at > %lld:now AND idle_at >= updated_at

-- With the transfers that run.
-- part: session_view_columns
s.assignment_id, s.asset_id, s.status, s.size, s.transfers + (SELECT COUNT(*) FROM download_transfer t
    WHERE t.session_id = s.id AND t.generation = s.generation) AS transfers, s.opened_at, s.updated_at,
    s.bytes + COALESCE((SELECT SUM(t.bytes) FROM download_transfer t
        WHERE t.session_id = s.id AND t.generation = s.generation), 0) AS bytes, s.id, s.generation,
    s.acknowledged + COALESCE((SELECT SUM(t.acknowledged) FROM download_transfer t
        WHERE t.session_id = s.id AND t.generation = s.generation), 0) AS acknowledged,
    s.handed_over + COALESCE((SELECT SUM(t.handed_over) FROM download_transfer t
        WHERE t.session_id = s.id AND t.generation = s.generation), 0) AS handed_over,
    s.version, s.network, s.etag, s.ended_at, (SELECT e.filename FROM asset e WHERE e.id = s.asset_id) AS filename

-- For each assignment no more rows are read than are wanted in all.
-- name: download_sessions_of_order
-- dialect: sqlite3
SELECT {{session_view_columns}}
FROM assignment a CROSS JOIN download_session s
WHERE a.order_id = %lld AND s.rowid IN (
    SELECT d.rowid FROM download_session d
    WHERE d.assignment_id = a.id AND (d.opened_at, d.id, d.generation) < (%lld:opened_at, %s:id,
        %lld:generation)
    ORDER BY d.opened_at DESC, d.id DESC, d.generation DESC LIMIT %lld)
ORDER BY s.opened_at DESC, s.id DESC, s.generation DESC LIMIT %lld

-- name: download_sessions_of_order
-- dialect: pgsql
WITH a_rows AS MATERIALIZED (SELECT id FROM assignment WHERE order_id = %lld)
SELECT {{session_view_columns}}
FROM a_rows CROSS JOIN LATERAL (
    SELECT * FROM download_session d
    WHERE d.assignment_id = a_rows.id AND (d.opened_at, d.id, d.generation) < (%lld:opened_at, %s:id,
        %lld:generation)
    ORDER BY d.opened_at DESC, d.id DESC, d.generation DESC LIMIT %lld) s
ORDER BY s.opened_at DESC, s.id DESC, s.generation DESC LIMIT %lld

-- The open sessions of assignments, which hold downloads that are not charged yet, with the number of their
-- transfers. They are among an assignment's newest sessions. An index of open sessions would be changed twice
-- by each download.
-- part: held_columns
s.assignment_id, s.id, s.generation, s.files, s.idle_at, (SELECT COUNT(*) FROM download_transfer t
    WHERE t.session_id = s.id AND t.generation = s.generation) AS running

-- name: download_sessions_open
-- dialect: sqlite3
SELECT {{held_columns}}
FROM json_each(%ids:assignment_ids) given_rows CROSS JOIN download_session s
WHERE s.status = 'open' AND s.rowid IN (
    SELECT d.rowid FROM download_session d WHERE d.assignment_id = CAST(given_rows.value AS INTEGER)
    ORDER BY d.opened_at DESC, d.id DESC, d.generation DESC LIMIT 100)

-- name: download_sessions_open
-- dialect: pgsql
SELECT {{held_columns}}
FROM unnest(%ids:assignment_ids) given_rows CROSS JOIN LATERAL (
    SELECT * FROM download_session d WHERE d.assignment_id = given_rows
    ORDER BY d.opened_at DESC, d.id DESC, d.generation DESC LIMIT 100) s
WHERE s.status = 'open'

-- Takes one download of each asset in a JSON array of [id, version]; a limit of 0 means no limit.  Fails if an
-- asset has no download left.  Other bytes than those that were taken last begin a new allowance if the mapping
-- says so: nothing of the limit is used, and granted downloads that were left stay (mdl_allowance_renew).
-- part: begins_anew
excluded.is_fresh = 1 AND allowance.version <> excluded.version

-- part: one_more
downloads_used = CASE WHEN {{begins_anew}} THEN 1
        WHEN CAST(%lld:limit AS BIGINT) = 0
            OR allowance.downloads_used < CAST(%lld:limit AS BIGINT) + allowance.downloads_extra
        THEN allowance.downloads_used + 1 ELSE {{failure:allowance.downloads_used}} END,
    downloads_extra = CASE WHEN {{begins_anew}} AND CAST(%lld:limit AS BIGINT) > 0
            AND allowance.downloads_used > CAST(%lld:limit AS BIGINT)
        THEN CASE WHEN allowance.downloads_extra + CAST(%lld:limit AS BIGINT) > allowance.downloads_used
            THEN allowance.downloads_extra + CAST(%lld:limit AS BIGINT) - allowance.downloads_used ELSE 0 END
        ELSE allowance.downloads_extra END,
    kept = CASE WHEN {{begins_anew}} THEN '' ELSE allowance.kept END,
    is_fresh = CASE WHEN allowance.version = excluded.version THEN allowance.is_fresh ELSE excluded.is_fresh END,
    version = excluded.version

-- name: allowance_take
-- dialect: sqlite3
INSERT INTO allowance (assignment_id, asset_id, version, downloads_used, downloads_extra, is_fresh)
SELECT %lld:assignment_id, value ->> 0, value ->> 1, 1, 0, %lld:is_fresh FROM json_each(%s:files) WHERE true
ON CONFLICT (assignment_id, asset_id) DO UPDATE SET {{one_more}}

-- name: allowance_take
-- dialect: pgsql
INSERT INTO allowance (assignment_id, asset_id, version, downloads_used, downloads_extra, is_fresh)
SELECT %lld:assignment_id, (value ->> 0)::bigint, value ->> 1, 1, 0, %lld:is_fresh
FROM jsonb_array_elements(%s:files::jsonb) value ORDER BY 2
ON CONFLICT (assignment_id, asset_id) DO UPDATE SET {{one_more}}

-- Everything that decides about an archive of an assignment's files, apart from the files.
-- name: archive_grant
SELECT o.access_status, o.undeclared, a.status AS assignment_status, a.expires_at,
    COALESCE(m.download_limit, a.download_limit) AS download_limit, o.page_id,
    o.storefront_order_id, o.page_replaced_at, h.blocked_at, a.quantity, m.fresh_downloads,
    {{session_last_columns}}
FROM assignment a
JOIN orders o ON o.id = a.order_id
JOIN shop h ON h.id = o.shop_id
JOIN mapping m ON m.id = a.mapping_id
{{session_last_join}}
WHERE a.id = %lld:assignment_id

-- name: assignment_page
SELECT o.page_id, o.page_replaced_at
FROM assignment a JOIN orders o ON o.id = a.order_id WHERE a.id = %lld

-- The ids of an assignment's files, which follow the mapping or were pinned: one text for each list, the
-- mapping's own before those of its packs.  A single text would need a sort of all ids, for which SQLite takes
-- megabytes that the thread keeps.  A file in two lists comes twice.
-- name: archive_lists
-- dialect: sqlite3
SELECT -1 AS pack, (
    SELECT group_concat(asset_id, ',') FROM (
        SELECT asset_id FROM mapping_file WHERE mapping_id = a.mapping_id ORDER BY position
    )
)
FROM assignment a WHERE a.id = %lld AND a.content = 'live'
UNION ALL
SELECT mp.position, (
    SELECT group_concat(asset_id, ',') FROM (
        SELECT asset_id FROM pack_file WHERE pack_id = mp.pack_id ORDER BY position
    )
)
FROM assignment a JOIN mapping_pack mp ON mp.mapping_id = a.mapping_id
WHERE a.id = %lld AND a.content = 'live'
UNION ALL
SELECT -1, (
    SELECT group_concat(asset_id, ',') FROM (
        SELECT asset_id FROM assignment_file WHERE assignment_id = a.id ORDER BY position
    )
)
FROM assignment a WHERE a.id = %lld AND a.content = 'pinned'
ORDER BY pack

-- name: archive_lists
-- dialect: pgsql
SELECT -1 AS pack, (
    SELECT string_agg(asset_id::text, ',' ORDER BY position)
    FROM mapping_file WHERE mapping_id = a.mapping_id
)
FROM assignment a WHERE a.id = %lld AND a.content = 'live'
UNION ALL
SELECT mp.position, (
    SELECT string_agg(asset_id::text, ',' ORDER BY position)
    FROM pack_file WHERE pack_id = mp.pack_id
)
FROM assignment a JOIN mapping_pack mp ON mp.mapping_id = a.mapping_id
WHERE a.id = %lld AND a.content = 'live'
UNION ALL
SELECT -1, (
    SELECT string_agg(asset_id::text, ',' ORDER BY position)
    FROM assignment_file WHERE assignment_id = a.id
)
FROM assignment a WHERE a.id = %lld AND a.content = 'pinned'
ORDER BY pack

-- The archive's ready files, with their positions in the list of ids.
-- part: archive_columns
s.id, s.filename, s.sha256, b.size, b.crc32, s.updated_at, COALESCE(w.downloads_used, 0) AS downloads_used,
    COALESCE(w.downloads_extra, 0) AS downloads_extra, COALESCE(w.version, '') AS version, b.object, b.missing_at

-- name: archive_files
-- dialect: sqlite3
SELECT given_rows.key, {{archive_columns}}
FROM json_each(%ids) given_rows CROSS JOIN asset s ON s.id = CAST(given_rows.value AS INTEGER)
JOIN blob b ON b.sha256 = s.sha256
LEFT JOIN allowance w ON w.assignment_id = %lld AND w.asset_id = s.id
WHERE s.status = 'ready' AND +s.deleted_at IS NULL

-- Each allowance is looked up by its whole key: a join would compare each file with all that the
-- assignment has.
-- name: archive_files
-- dialect: pgsql
SELECT given_rows.place - 1, {{archive_columns}}
FROM unnest(%ids) WITH ORDINALITY given_rows (id, place)
CROSS JOIN LATERAL (SELECT * FROM asset WHERE id = given_rows.id OFFSET 0) s
JOIN blob b ON b.sha256 = s.sha256
LEFT JOIN LATERAL (SELECT * FROM allowance WHERE assignment_id = %lld AND asset_id = s.id OFFSET 0) w ON true
WHERE s.status = 'ready' AND +s.deleted_at IS NULL

-- part: given_allowances
-- dialect: sqlite3
(SELECT value ->> 'assignment_id' AS assignment_id, value ->> 'asset_id' AS asset_id,
    value ->> 'taken' AS taken, value ->> 'kept' AS kept, value ->> 'kept_bytes' AS kept_bytes
    FROM json_each(%s:allowances)) g

-- part: given_allowances
-- dialect: pgsql
jsonb_to_recordset(%s:allowances::jsonb) g (assignment_id bigint, asset_id bigint, taken integer, kept text,
    kept_bytes bigint)

-- name: allowances_lock
SELECT w.assignment_id, w.asset_id, w.kept, w.kept_bytes, w.version, w.is_fresh
FROM {{given_allowances}}
CROSS JOIN allowance w WHERE w.assignment_id = g.assignment_id AND w.asset_id = g.asset_id
ORDER BY w.assignment_id, w.asset_id {{for_update}}

-- name: allowances_settle
UPDATE allowance AS w SET kept = g.kept, kept_bytes = g.kept_bytes,
    downloads_used = CASE WHEN w.downloads_used + g.taken < 0 THEN 0 ELSE w.downloads_used + g.taken END
FROM {{given_allowances}}
WHERE w.assignment_id = g.assignment_id AND w.asset_id = g.asset_id
