-- The server's secret can be replaced: which one has signed a key (NULL: not known), and since when each
-- signs.  A third scope, between the other two.
CREATE TABLE api_key_new (
    id TEXT PRIMARY KEY,
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('full', 'deliver', 'read')),
    secret_mac TEXT NOT NULL,
    secret_id TEXT,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER
);
INSERT INTO api_key_new
SELECT id, shop_id, name, scope, secret_mac, NULL, created_at, last_used_at, expires_at, revoked_at FROM api_key;
DROP TABLE api_key;
ALTER TABLE api_key_new RENAME TO api_key;
CREATE INDEX api_key_shop ON api_key (shop_id, created_at);
CREATE TABLE secret (
    id TEXT PRIMARY KEY,
    since INTEGER NOT NULL
);
