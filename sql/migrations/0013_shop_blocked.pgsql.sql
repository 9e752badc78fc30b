-- When the operator blocked a shop, and why; NULL: it is not blocked.
ALTER TABLE shop ADD COLUMN blocked_at BIGINT;
ALTER TABLE shop ADD COLUMN block_reason TEXT;
CREATE INDEX shop_blocked ON shop (id) WHERE blocked_at IS NOT NULL;
