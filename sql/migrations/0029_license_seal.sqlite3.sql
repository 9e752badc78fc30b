-- License keys are sealed with a data key, and that with the server's secret.  The background process seals
-- those of older versions.
CREATE TABLE data_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sealed TEXT NOT NULL
);
ALTER TABLE license_key ADD COLUMN is_sealed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX license_key_clear ON license_key (id) WHERE is_sealed = 0;
