-- Everything that decides over one download; a row only when the file belongs to the assignment.
-- name: download_grant
SELECT o.access_status, a.status, a.expires_at, s.status, s.filename, s.content_type, s.sha256,
    b.size, s.updated_at, m.download_limit, o.page_id, h.name, h.email,
    COALESCE(w.downloads_used, 0), COALESCE(w.downloads_extra, 0),
    h.id, o.storefront_order_id, o.access_reason, c.locale
FROM assignment a
JOIN orders o ON o.id = a.order_id
JOIN customer c ON c.id = o.customer_id
JOIN shop h ON h.id = o.shop_id
JOIN mapping m ON m.id = a.mapping_id
JOIN asset s ON s.id = %lld AND s.deleted_at IS NULL
LEFT JOIN blob b ON b.sha256 = s.sha256
LEFT JOIN allowance w ON w.assignment_id = a.id AND w.asset_id = s.id
WHERE a.id = %lld AND (
    (a.content = 'live' AND EXISTS (SELECT 1 FROM mapping_file f
        WHERE f.mapping_id = a.mapping_id AND f.asset_id = s.id))
    OR (a.content = 'live' AND EXISTS (SELECT 1 FROM mapping_pack mp
        JOIN pack_file pf ON pf.pack_id = mp.pack_id
        WHERE mp.mapping_id = a.mapping_id AND pf.asset_id = s.id))
    OR (a.content = 'pinned' AND EXISTS (SELECT 1 FROM assignment_file f
        WHERE f.assignment_id = a.id AND f.asset_id = s.id)))

-- name: download_session_find
SELECT opened_at FROM download_session WHERE id = %s

-- name: download_session_open
INSERT INTO download_session (id, assignment_id, asset_id, opened_at) VALUES (%s, %lld, %lld, %lld)
ON CONFLICT (id) DO NOTHING

-- Takes one download if there is one left; a limit of 0 has no end.
-- name: allowance_take
INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra)
VALUES (%lld, %lld, 1, 0)
ON CONFLICT (assignment_id, asset_id) DO UPDATE SET downloads_used = allowance.downloads_used + 1
WHERE %lld = 0 OR allowance.downloads_used < %lld + allowance.downloads_extra

-- Everything that decides over an archive of an assignment's files, but the files.
-- name: archive_grant
SELECT o.access_status, a.status, a.expires_at, m.download_limit, o.page_id, h.name, h.email,
    o.storefront_order_id
FROM assignment a
JOIN orders o ON o.id = a.order_id
JOIN shop h ON h.id = o.shop_id
JOIN mapping m ON m.id = a.mapping_id
WHERE a.id = %lld

-- What an archive has to know of files; only of those that are ready.
-- name: archive_files
SELECT s.id, s.filename, s.sha256, b.size, b.crc32, s.updated_at, COALESCE(w.downloads_used, 0),
    COALESCE(w.downloads_extra, 0)
FROM asset s
JOIN blob b ON b.sha256 = s.sha256
LEFT JOIN allowance w ON w.assignment_id = %lld AND w.asset_id = s.id
WHERE s.id {{in_given}} AND s.status = 'ready' AND s.deleted_at IS NULL
