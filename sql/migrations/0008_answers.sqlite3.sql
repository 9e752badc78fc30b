-- Without a rowid the answers were in the index by key: a search compared with whole answers of up to
-- megabytes, and each of more than a kilobyte took a page of its own.
CREATE TABLE idempotency_new (
    shop_id INTEGER NOT NULL REFERENCES shop (id),
    key_hi INTEGER NOT NULL, -- with key_lo the first 16 bytes of the key's SHA-256
    key_lo INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    location TEXT,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (shop_id, key_hi, key_lo)
);
INSERT INTO idempotency_new
SELECT shop_id, key_hi, key_lo, fingerprint, status, location, body, created_at FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_new RENAME TO idempotency;
CREATE INDEX idempotency_created ON idempotency (created_at);
