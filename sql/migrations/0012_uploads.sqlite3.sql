-- Bytes by which an open upload of unknown size counts against its shop's quota.
ALTER TABLE upload ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
CREATE INDEX upload_shop_open ON upload (shop_id, id) WHERE status = 'open';
