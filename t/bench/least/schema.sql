-- Tables of the yardsticks: what any program needs for the same writes, with the keys that make a
-- repeated request harmless, and without a reference.
CREATE TABLE least_answer (shop_id BIGINT NOT NULL, key_hi BIGINT NOT NULL, key_lo BIGINT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (shop_id, key_hi, key_lo));
CREATE TABLE least_mapping (id BIGINT PRIMARY KEY, shop_id BIGINT NOT NULL, product TEXT NOT NULL, variants TEXT NOT NULL, kind TEXT NOT NULL, updated_at BIGINT NOT NULL, UNIQUE (shop_id, product, variants));
CREATE TABLE least_mapping_file (mapping_id BIGINT NOT NULL, asset_id BIGINT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (mapping_id, asset_id));
CREATE TABLE least_customer (id BIGINT PRIMARY KEY, shop_id BIGINT NOT NULL, storefront_id TEXT NOT NULL, email TEXT, UNIQUE (shop_id, storefront_id));
CREATE TABLE least_order (id BIGINT PRIMARY KEY, shop_id BIGINT NOT NULL, storefront_id TEXT NOT NULL, customer_id BIGINT NOT NULL, page TEXT NOT NULL UNIQUE, status TEXT NOT NULL, created_at BIGINT NOT NULL, UNIQUE (shop_id, storefront_id));
CREATE TABLE least_assignment (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, product TEXT NOT NULL, mapping_id BIGINT NOT NULL, status TEXT NOT NULL, UNIQUE (order_id, product));
CREATE TABLE least_event (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, action TEXT NOT NULL, created_at BIGINT NOT NULL);
CREATE TABLE least_email (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, recipient TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE least_job (id BIGINT PRIMARY KEY, email_id BIGINT NOT NULL, lane TEXT NOT NULL, status TEXT NOT NULL, due_at BIGINT);
CREATE INDEX least_job_due ON least_job (lane, due_at);
CREATE TABLE least_allowance (assignment_id BIGINT NOT NULL, asset_id BIGINT NOT NULL, used BIGINT NOT NULL, PRIMARY KEY (assignment_id, asset_id));
CREATE TABLE least_session (id BIGINT PRIMARY KEY, assignment_id BIGINT NOT NULL, asset_id BIGINT NOT NULL, status TEXT NOT NULL, bytes BIGINT NOT NULL);
INSERT INTO least_mapping (id, shop_id, product, variants, kind, updated_at) WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 1000) SELECT -i, 1, 'gid://bench/Product/-' || i, '', 'FILES', 0 FROM i;
INSERT INTO least_mapping_file (mapping_id, asset_id, position) SELECT id, -id, 0 FROM least_mapping;
INSERT INTO least_allowance (assignment_id, asset_id, used) SELECT -id, -id, 0 FROM least_mapping;
