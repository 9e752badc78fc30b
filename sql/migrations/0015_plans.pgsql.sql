-- Customers, orders, assignments and assets are never deleted: an asset that is deleted keeps its row.
-- To check a reference to one of them, PostgreSQL locked its row in every write, which is a multixact as
-- soon as two write at once.  A mapping's files are locked by asset_known before they are written.
ALTER TABLE mapping_file DROP CONSTRAINT mapping_file_asset_id_fkey;
ALTER TABLE orders DROP CONSTRAINT orders_customer_id_fkey;
ALTER TABLE assignment DROP CONSTRAINT assignment_order_id_fkey;
ALTER TABLE order_event DROP CONSTRAINT order_event_order_id_fkey;
ALTER TABLE email DROP CONSTRAINT email_order_id_fkey;
ALTER TABLE job DROP CONSTRAINT job_asset_id_fkey, DROP CONSTRAINT job_order_id_fkey;
ALTER TABLE license_key DROP CONSTRAINT license_key_assignment_id_fkey;
ALTER TABLE license_claim DROP CONSTRAINT license_claim_assignment_id_fkey;
ALTER TABLE allowance DROP CONSTRAINT allowance_assignment_id_fkey, DROP CONSTRAINT allowance_asset_id_fkey;
ALTER TABLE download_session
    DROP CONSTRAINT download_session_assignment_id_fkey, DROP CONSTRAINT download_session_asset_id_fkey;

-- An index that job_claim_shared alone can use.  With statistics of a database in which one shop has most
-- of the jobs, PostgreSQL took the index of a shop's jobs, and read all of them for each claim.
DROP INDEX job_due_of_shop;
CREATE INDEX job_due_of_shop ON job (lane, (shop_id + 0), due_at) WHERE due_at IS NOT NULL;
