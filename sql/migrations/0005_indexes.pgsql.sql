-- What refers to an asset, a pack, a link or a tag is listed in the order of its ids.
DROP INDEX mapping_file_asset;
CREATE INDEX mapping_file_asset ON mapping_file (asset_id, mapping_id);
DROP INDEX mapping_pack_pack;
CREATE INDEX mapping_pack_pack ON mapping_pack (pack_id, mapping_id);
DROP INDEX mapping_link_link;
CREATE INDEX mapping_link_link ON mapping_link (link_id, mapping_id);
DROP INDEX mapping_license_key_tag_tag;
CREATE INDEX mapping_license_key_tag_tag ON mapping_license_key_tag (tag_id, mapping_id);
DROP INDEX pack_file_asset;
CREATE INDEX pack_file_asset ON pack_file (asset_id, pack_id);

-- Whether an order follows a mapping, which may have made any number of others.
DROP INDEX assignment_mapping;
CREATE INDEX assignment_mapping ON assignment (mapping_id, content);

-- The newest job of an order; what a process sends, link by link.
DROP INDEX job_order;
CREATE INDEX job_order ON job (order_id, id) WHERE order_id IS NOT NULL;
DROP INDEX download_transfer_meter;
CREATE INDEX download_transfer_meter ON download_transfer (meter_id, session_id);

-- For lists alone, which say id > 0.  Of a table without statistics PostgreSQL would rather take these
-- small indexes than the one that finds a product or an order, and read all of a shop's rows.
DROP INDEX asset_shop;
CREATE INDEX asset_shop ON asset (shop_id, id) WHERE deleted_at IS NULL AND id > 0;
DROP INDEX mapping_shop;
CREATE INDEX mapping_shop ON mapping (shop_id, id) WHERE deleted_at IS NULL AND id > 0;
DROP INDEX orders_shop;
CREATE INDEX orders_shop ON orders (shop_id, id) WHERE id > 0;

-- No statement asks for all of an asset's allowances, or all of a tag's claims.
DROP INDEX allowance_asset;
DROP INDEX license_claim_tag;
