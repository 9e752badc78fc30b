-- Downloads are removed in the order in which they began, an upload once no job of it is left.
CREATE INDEX download_session_opened ON download_session (opened_at);
CREATE INDEX job_upload ON job (upload_id) WHERE upload_id IS NOT NULL;

-- A lease is told by its beat: nothing looks for one by its time.
DROP INDEX download_meter_lease;
