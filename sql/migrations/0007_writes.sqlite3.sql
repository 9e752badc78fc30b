-- A job has one of these, and needs no place in the indexes of the others.
DROP INDEX job_asset;
CREATE INDEX job_asset ON job (asset_id) WHERE asset_id IS NOT NULL;
DROP INDEX job_email;
CREATE INDEX job_email ON job (email_id) WHERE email_id IS NOT NULL;
