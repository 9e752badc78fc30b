CREATE TABLE category (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX category_shop ON category (shop_id, id);

-- A deleted asset stays as a row: jobs and past downloads name it.
ALTER TABLE asset ADD COLUMN category_id INTEGER REFERENCES category (id);
ALTER TABLE asset ADD COLUMN deleted_at INTEGER;
DROP INDEX asset_shop;
CREATE INDEX asset_shop ON asset (shop_id, id) WHERE deleted_at IS NULL;
CREATE INDEX asset_status ON asset (shop_id, status, id) WHERE deleted_at IS NULL;
CREATE INDEX asset_category ON asset (category_id) WHERE category_id IS NOT NULL;
CREATE INDEX asset_shop_category ON asset (shop_id, category_id, id) WHERE deleted_at IS NULL;
CREATE INDEX asset_filename ON asset (shop_id, filename, id) WHERE deleted_at IS NULL;
CREATE INDEX asset_sha256 ON asset (shop_id, sha256, id) WHERE deleted_at IS NULL;

-- The bytes that the assets of a shop take, for its quota.
ALTER TABLE shop ADD COLUMN bytes_stored INTEGER NOT NULL DEFAULT 0;
UPDATE shop SET bytes_stored = COALESCE((SELECT sum(b.size) FROM asset a
    JOIN blob b ON b.sha256 = a.sha256 WHERE a.shop_id = shop.id), 0);

CREATE TABLE pack (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX pack_shop ON pack (shop_id, id);

CREATE TABLE pack_file (
    pack_id INTEGER NOT NULL REFERENCES pack (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (pack_id, asset_id)
);
CREATE INDEX pack_file_asset ON pack_file (asset_id);

CREATE TABLE link (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    title TEXT NOT NULL,
    url TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX link_shop ON link (shop_id, id);

-- Both counts change together with the keys, in one transaction.  A deleted tag stays as a row, because
-- of the keys that were given away.
CREATE TABLE license_key_tag (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    low_stock_threshold INTEGER,
    available INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX license_key_tag_shop ON license_key_tag (shop_id, id) WHERE deleted_at IS NULL;

CREATE TABLE license_key (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tag_id INTEGER NOT NULL REFERENCES license_key_tag (id),
    license_key TEXT NOT NULL,
    assignment_id INTEGER REFERENCES assignment (id),
    assigned_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (tag_id, license_key)
);
CREATE INDEX license_key_available ON license_key (tag_id, id) WHERE assignment_id IS NULL;
CREATE INDEX license_key_assignment ON license_key (assignment_id, id)
    WHERE assignment_id IS NOT NULL;

-- How many keys of a tag an assignment should have, and how many it has.
CREATE TABLE license_claim (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    tag_id INTEGER NOT NULL REFERENCES license_key_tag (id),
    wanted INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, tag_id)
);
CREATE INDEX license_claim_waiting ON license_claim (tag_id, assignment_id)
    WHERE assigned < wanted;
CREATE INDEX license_claim_tag ON license_claim (tag_id);

CREATE TABLE mapping_pack (
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    pack_id INTEGER NOT NULL REFERENCES pack (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, pack_id)
);
CREATE INDEX mapping_pack_pack ON mapping_pack (pack_id);

CREATE TABLE mapping_link (
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    link_id INTEGER NOT NULL REFERENCES link (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, link_id)
);
CREATE INDEX mapping_link_link ON mapping_link (link_id);

CREATE TABLE mapping_license_key_tag (
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    tag_id INTEGER NOT NULL REFERENCES license_key_tag (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, tag_id)
);
CREATE INDEX mapping_license_key_tag_tag ON mapping_license_key_tag (tag_id);

-- A deleted mapping that has orders stays as a row and goes on serving them.  Its variants_hash becomes
-- '#' and its id, which frees its natural key.
ALTER TABLE mapping ADD COLUMN deleted_at INTEGER;
CREATE INDEX mapping_shop ON mapping (shop_id, id) WHERE deleted_at IS NULL;
CREATE INDEX mapping_product ON mapping (shop_id, storefront_product_id, id)
    WHERE deleted_at IS NULL;

-- Like assignment_file: what an assignment with pinned content keeps.  A pack is pinned by its files.
CREATE TABLE assignment_link (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    link_id INTEGER NOT NULL REFERENCES link (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, link_id)
);
CREATE INDEX assignment_link_link ON assignment_link (link_id);

-- Queued, but not to be sent before the order is approved.
ALTER TABLE email ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

CREATE INDEX orders_shop ON orders (shop_id, id);

-- The audit trail of an order: rows are added and never changed.
CREATE TABLE order_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    action TEXT NOT NULL,
    assignment_ids TEXT, -- a JSON array; NULL: the whole order
    key_id TEXT, -- the API key that asked; NULL: the service itself
    reason TEXT,
    details TEXT, -- a JSON object
    created_at INTEGER NOT NULL
);
CREATE INDEX order_event_order ON order_event (order_id, id);

CREATE TABLE upload (
    id TEXT PRIMARY KEY,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    status TEXT NOT NULL CHECK (status IN ('open', 'completed', 'aborted')),
    filename TEXT NOT NULL,
    title TEXT NOT NULL,
    content_type TEXT,
    category_id INTEGER REFERENCES category (id),
    size INTEGER, -- as announced, or as it came
    expected_sha256 TEXT,
    sha256 TEXT REFERENCES blob (sha256), -- once all bytes came in one piece
    asset_id INTEGER REFERENCES asset (id), -- the asset that it became
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX upload_open ON upload (expires_at) WHERE status = 'open';
CREATE INDEX upload_category ON upload (category_id) WHERE category_id IS NOT NULL;

ALTER TABLE job ADD COLUMN upload_id TEXT REFERENCES upload (id);
CREATE INDEX job_shop_type ON job (shop_id, id) WHERE type <> 'email';
