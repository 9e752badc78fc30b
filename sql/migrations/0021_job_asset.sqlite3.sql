-- The jobs of an asset come page by page, the newest first.
DROP INDEX job_asset;
CREATE INDEX job_asset ON job (asset_id, id) WHERE asset_id IS NOT NULL;
