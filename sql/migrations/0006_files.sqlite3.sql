-- What was delivered is kept for each file of a link, as in mod_downloads/core/download/progress.h.
ALTER TABLE allowance ADD COLUMN kept TEXT NOT NULL DEFAULT ''; -- of files that were given back
ALTER TABLE allowance ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0; -- the sum over sessions

UPDATE allowance SET kept_bytes = p.bytes,
    kept = p.asset_id || '/' || substr(p.etag, 2, 16) || '/' || b.size || '/' || p.ranges
FROM download_partial p JOIN blob b ON b.sha256 = substr(p.etag, 2, 64)
WHERE allowance.assignment_id = p.assignment_id AND allowance.asset_id = p.asset_id;

DROP TABLE download_partial;

CREATE TABLE download_session_new (
    id TEXT NOT NULL, -- of the signed link
    generation INTEGER NOT NULL, -- from 1; a link whose download is complete can begin another
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER REFERENCES asset (id), -- NULL: the archive of all files
    etag TEXT NOT NULL,
    size INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'counted', 'returned')),
    files TEXT NOT NULL, -- whose downloads it reserved; a whole one is charged
    bytes INTEGER NOT NULL, -- bytes delivered twice count twice
    transfers INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    idle_at INTEGER NOT NULL, -- when the session ends unless a transfer of it runs
    PRIMARY KEY (id, generation)
);

INSERT INTO download_session_new
SELECT s.id, s.generation, s.assignment_id, s.asset_id, s.etag, s.size, s.status,
    CASE WHEN s.asset_id IS NOT NULL AND s.status = 'open' AND s.ranges <> ''
        THEN s.asset_id || '/' || substr(s.etag, 2, 16) || '/' || s.size || '/' || s.ranges
        ELSE (SELECT group_concat(f.value || CASE WHEN s.status = 'counted' OR EXISTS (
                SELECT 1 FROM json_each('["' || replace(s.kept, ',', '","') || '"]') r
                WHERE r.value <> '' AND f.key BETWEEN CAST(r.value AS INTEGER)
                    AND CAST(substr(r.value, instr(r.value, '-') + 1) AS INTEGER))
                THEN '=' ELSE '' END, ';')
            FROM json_each(s.taken) f) END,
    s.bytes, s.transfers, s.opened_at, s.updated_at, s.idle_at
FROM download_session s;

DROP TABLE download_session;
ALTER TABLE download_session_new RENAME TO download_session;
CREATE INDEX download_session_assignment ON download_session (assignment_id, opened_at);
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE status = 'open';

-- Transfers that ran when the server was stopped: what they delivered of archives is forgotten.
CREATE TABLE download_transfer_new (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    assignment_id INTEGER NOT NULL,
    meter_id TEXT NOT NULL,
    files TEXT NOT NULL, -- what it delivered, as last known
    bytes INTEGER NOT NULL
);
INSERT INTO download_transfer_new
SELECT t.id, t.session_id, t.generation, t.assignment_id, t.meter_id,
    CASE WHEN s.asset_id IS NULL OR t.ranges = '' THEN ''
        ELSE s.asset_id || '/' || substr(s.etag, 2, 16) || '/' || s.size || '/' || t.ranges END, t.bytes
FROM download_transfer t
JOIN download_session s ON s.id = t.session_id AND s.generation = t.generation;

DROP TABLE download_transfer;
ALTER TABLE download_transfer_new RENAME TO download_transfer;
CREATE INDEX download_transfer_session ON download_transfer (session_id, generation);
CREATE INDEX download_transfer_meter ON download_transfer (meter_id, session_id);
