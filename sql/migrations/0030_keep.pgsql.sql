-- Downloads are removed in the order in which they began, an upload once no job of it is left.  The ids of
-- both tables are compared by their bytes.
CREATE INDEX download_session_opened ON download_session (opened_at);
ALTER TABLE job ALTER COLUMN upload_id TYPE TEXT COLLATE "C";
CREATE INDEX job_upload ON job (upload_id) WHERE upload_id IS NOT NULL;

-- A lease is told by its beat: nothing looks for one by its time.
DROP INDEX download_meter_lease;
