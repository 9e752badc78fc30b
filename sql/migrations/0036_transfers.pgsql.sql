-- A session says when it ends only while none of its requests is sending: then one that delivers a file at
-- once changes no column of an index, and PostgreSQL writes its new row beside the old one.
ALTER TABLE download_session ADD COLUMN ends_at BIGINT; -- NULL: a transfer runs, or it is not open
UPDATE download_session SET ends_at = idle_at WHERE status = 'open';
DROP INDEX download_session_idle;
ALTER TABLE download_session DROP COLUMN idle_at;
ALTER TABLE download_session RENAME COLUMN ends_at TO idle_at;
CREATE INDEX download_session_idle ON download_session (idle_at) WHERE idle_at IS NOT NULL;
ALTER TABLE download_session SET (fillfactor = 80);

-- Who ends a transfer knows its process.
ALTER TABLE download_transfer DROP CONSTRAINT download_transfer_pkey;
DROP INDEX download_transfer_meter;
ALTER TABLE download_transfer ADD PRIMARY KEY (meter_id, id);
