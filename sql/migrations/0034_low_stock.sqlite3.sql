-- When the staff were last told that a stock of license keys is low.
ALTER TABLE license_key_tag ADD COLUMN warned_at INTEGER;
