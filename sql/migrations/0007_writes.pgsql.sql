-- A job has one of these, and needs no place in the indexes of the others.
DROP INDEX job_asset;
CREATE INDEX job_asset ON job (asset_id) WHERE asset_id IS NOT NULL;
DROP INDEX job_email;
CREATE INDEX job_email ON job (email_id) WHERE email_id IS NOT NULL;

-- A shop is never deleted, and its id comes from an API key.  To check it, PostgreSQL locked the shop's
-- row for every write, which is a multixact as soon as two write at once.
ALTER TABLE idempotency DROP CONSTRAINT idempotency_shop_id_fkey;
ALTER TABLE asset DROP CONSTRAINT asset_shop_id_fkey;
ALTER TABLE mapping DROP CONSTRAINT mapping_shop_id_fkey;
ALTER TABLE customer DROP CONSTRAINT customer_shop_id_fkey;
ALTER TABLE orders DROP CONSTRAINT orders_shop_id_fkey;
ALTER TABLE email DROP CONSTRAINT email_shop_id_fkey;
ALTER TABLE job DROP CONSTRAINT job_shop_id_fkey;
ALTER TABLE category DROP CONSTRAINT category_shop_id_fkey;
ALTER TABLE pack DROP CONSTRAINT pack_shop_id_fkey;
ALTER TABLE link DROP CONSTRAINT link_shop_id_fkey;
ALTER TABLE license_key_tag DROP CONSTRAINT license_key_tag_shop_id_fkey;
ALTER TABLE upload DROP CONSTRAINT upload_shop_id_fkey;
