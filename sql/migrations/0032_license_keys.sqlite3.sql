-- Keys of revoked assignments go back to the stock, where the shop wants that.
ALTER TABLE license_key_tag ADD COLUMN reclaims INTEGER NOT NULL DEFAULT 0;

-- A key above a lowered quantity, of a tag whose keys do not go back: its assignment shows it no more, and
-- nobody else gets it.
ALTER TABLE license_key ADD COLUMN withdrawn_at INTEGER;

CREATE INDEX license_key_assigned ON license_key (tag_id, id)
    WHERE assignment_id IS NOT NULL AND withdrawn_at IS NULL;
CREATE INDEX license_key_withdrawn ON license_key (tag_id, id) WHERE withdrawn_at IS NOT NULL;
