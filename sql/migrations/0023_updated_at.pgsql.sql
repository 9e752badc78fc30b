-- When anything of it changed last; 0: nothing has since the migration.
ALTER TABLE job ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upload ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
