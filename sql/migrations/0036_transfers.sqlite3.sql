-- A session says when it ends only while none of its requests is sending: then one that delivers a file at
-- once changes no column of an index.
ALTER TABLE download_session ADD COLUMN ends_at INTEGER; -- NULL: a transfer runs, or it is not open
UPDATE download_session SET ends_at = idle_at WHERE status = 'open';
DROP INDEX download_session_idle;
ALTER TABLE download_session DROP COLUMN idle_at;
ALTER TABLE download_session RENAME COLUMN ends_at TO idle_at;
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE idle_at IS NOT NULL;

-- Who ends a transfer knows its process.
CREATE TABLE download_transfer_new (
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    assignment_id INTEGER NOT NULL,
    meter_id TEXT NOT NULL,
    files TEXT NOT NULL, -- what it delivered, as last known
    bytes INTEGER NOT NULL,
    PRIMARY KEY (meter_id, id)
) WITHOUT ROWID;
INSERT INTO download_transfer_new
SELECT id, session_id, generation, assignment_id, meter_id, files, bytes FROM download_transfer;
DROP TABLE download_transfer;
ALTER TABLE download_transfer_new RENAME TO download_transfer;
CREATE INDEX download_transfer_session ON download_transfer (session_id, generation);
