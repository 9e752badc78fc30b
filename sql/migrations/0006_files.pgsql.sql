-- What was delivered is kept for each file of a link, as in mod_downloads/core/download/progress.h.
ALTER TABLE allowance
    ADD COLUMN kept TEXT NOT NULL DEFAULT '', -- of files that were given back
    ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0; -- the sum over sessions

UPDATE allowance SET kept_bytes = p.bytes,
    kept = p.asset_id || '/' || substr(p.etag, 2, 16) || '/' || b.size || '/' || p.ranges
FROM download_partial p JOIN blob b ON b.sha256 = substr(p.etag, 2, 64)
WHERE allowance.assignment_id = p.assignment_id AND allowance.asset_id = p.asset_id;

DROP TABLE download_partial;

ALTER TABLE download_session ADD COLUMN files TEXT; -- whose downloads it reserved; a whole one is charged
UPDATE download_session s SET files =
    CASE WHEN s.asset_id IS NOT NULL AND s.status = 'open' AND s.ranges <> ''
        THEN s.asset_id || '/' || substr(s.etag, 2, 16) || '/' || s.size || '/' || s.ranges
        ELSE (SELECT string_agg(f.id || CASE WHEN s.status = 'counted' OR EXISTS (
                SELECT 1 FROM unnest(string_to_array(s.kept, ',')) r
                WHERE f.place - 1 BETWEEN split_part(r, '-', 1)::bigint AND split_part(r, '-', 2)::bigint)
                THEN '=' ELSE '' END, ';' ORDER BY f.place)
            FROM jsonb_array_elements_text(s.taken::jsonb) WITH ORDINALITY f (id, place)) END;

-- Transfers that ran when the server was stopped: what they delivered of archives is forgotten.
ALTER TABLE download_transfer
    DROP CONSTRAINT download_transfer_assignment_id_fkey,
    ADD COLUMN files TEXT NOT NULL DEFAULT ''; -- what it delivered, as last known
UPDATE download_transfer t
SET files = s.asset_id || '/' || substr(s.etag, 2, 16) || '/' || s.size || '/' || t.ranges
FROM download_session s
WHERE s.id = t.session_id AND s.generation = t.generation AND s.asset_id IS NOT NULL AND t.ranges <> '';

ALTER TABLE download_session
    ALTER COLUMN files SET NOT NULL, DROP COLUMN taken, DROP COLUMN ranges, DROP COLUMN kept;
ALTER TABLE download_transfer ALTER COLUMN files DROP DEFAULT, DROP COLUMN ranges;
