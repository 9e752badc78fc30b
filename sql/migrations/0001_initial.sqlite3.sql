-- Times are microseconds since 1970 in UTC; booleans are 0 and 1; digests are lower-case hexadecimal.

CREATE TABLE shop (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    domain TEXT NOT NULL UNIQUE,
    email TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'suspended')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('full', 'read')),
    secret_mac TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER
);
CREATE INDEX api_key_shop ON api_key (shop_id, created_at);

-- One row; its number grows with each change of a key, a scope or a shop's approval.
CREATE TABLE epoch (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    n INTEGER NOT NULL
);
INSERT INTO epoch (id, n) VALUES (1, 1);

CREATE TABLE idempotency (
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    key_hi INTEGER NOT NULL, -- with key_lo the first 16 bytes of the key's SHA-256
    key_lo INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    location TEXT,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (shop_id, key_hi, key_lo)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_at);

CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE asset (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    status TEXT NOT NULL CHECK (status IN ('pending', 'ready', 'failed')),
    filename TEXT NOT NULL,
    title TEXT NOT NULL,
    content_type TEXT,
    source_url TEXT,
    sha256 TEXT REFERENCES blob (sha256),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX asset_shop ON asset (shop_id, id);

CREATE TABLE mapping (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    storefront_product_id TEXT NOT NULL,
    variants_hash TEXT NOT NULL, -- of the sorted set; '' for the whole product
    download_type TEXT NOT NULL CHECK (download_type IN ('ZIP', 'FILES')),
    is_active INTEGER NOT NULL,
    download_limit INTEGER,
    access_days INTEGER,
    content TEXT NOT NULL CHECK (content IN ('live', 'pinned')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (shop_id, storefront_product_id, variants_hash)
);

CREATE TABLE mapping_variant (
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    storefront_variant_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, storefront_variant_id)
) WITHOUT ROWID;

CREATE TABLE mapping_file (
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (mapping_id, asset_id)
) WITHOUT ROWID;
CREATE INDEX mapping_file_asset ON mapping_file (asset_id);

CREATE TABLE customer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    storefront_customer_id TEXT NOT NULL,
    email TEXT,
    first_name TEXT,
    last_name TEXT,
    locale TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (shop_id, storefront_customer_id)
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    storefront_order_id TEXT NOT NULL,
    customer_id INTEGER NOT NULL REFERENCES customer (id),
    page_id TEXT NOT NULL UNIQUE,
    access_status TEXT NOT NULL CHECK (access_status IN ('active', 'held', 'revoked', 'rejected')),
    access_reason TEXT,
    fraud_decision TEXT NOT NULL
        CHECK (fraud_decision IN ('not_checked', 'passed', 'held', 'approved', 'rejected')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (shop_id, storefront_order_id)
);

CREATE TABLE assignment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    storefront_product_id TEXT NOT NULL,
    storefront_variant_id TEXT NOT NULL, -- '' for none
    quantity INTEGER NOT NULL,
    mapping_id INTEGER NOT NULL REFERENCES mapping (id),
    content TEXT NOT NULL CHECK (content IN ('live', 'pinned')),
    status TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (order_id, storefront_product_id, storefront_variant_id)
);
CREATE INDEX assignment_mapping ON assignment (mapping_id);

-- What an assignment with pinned content keeps.
CREATE TABLE assignment_file (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, asset_id)
) WITHOUT ROWID;
CREATE INDEX assignment_file_asset ON assignment_file (asset_id);
CREATE INDEX assignment_file_position ON assignment_file (assignment_id, position);

CREATE TABLE allowance (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    downloads_used INTEGER NOT NULL,
    downloads_extra INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, asset_id)
) WITHOUT ROWID;
CREATE INDEX allowance_asset ON allowance (asset_id);

CREATE TABLE download_session (
    id TEXT PRIMARY KEY,
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    asset_id INTEGER NOT NULL REFERENCES asset (id),
    opened_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX download_session_allowance ON download_session (assignment_id, asset_id);
CREATE INDEX download_session_asset ON download_session (asset_id);

CREATE TABLE email (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    order_id INTEGER NOT NULL REFERENCES orders (id),
    recipient TEXT,
    message_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'failed', 'no_recipient')),
    attempts INTEGER NOT NULL,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    sent_at INTEGER
);
CREATE INDEX email_order ON email (order_id, id);

CREATE TABLE job (
    id TEXT PRIMARY KEY,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    type TEXT NOT NULL,
    lane TEXT NOT NULL,
    asset_id INTEGER REFERENCES asset (id),
    email_id INTEGER REFERENCES email (id),
    source_url TEXT,
    expected_sha256 TEXT,
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    due_at INTEGER, -- when it may be claimed: the next attempt, or the end of a lease; NULL once finished
    lease_owner TEXT,
    lease_token INTEGER NOT NULL, -- fencing: grows with each claim
    bytes_received INTEGER NOT NULL,
    bytes_total INTEGER,
    validator TEXT, -- of the partial file: boot id and strong entity tag
    error_code TEXT,
    error_message TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
) WITHOUT ROWID;
CREATE INDEX job_due ON job (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX job_owner ON job (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX job_shop ON job (shop_id, id);
CREATE INDEX job_asset ON job (asset_id);
CREATE INDEX job_email ON job (email_id);
