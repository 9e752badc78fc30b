-- What a shop's staff decide over its emails, its held orders and its storefront.
ALTER TABLE shop ADD COLUMN sender_name TEXT; -- NULL: the shop's name
ALTER TABLE shop ADD COLUMN reply_to TEXT; -- NULL: the shop's email
ALTER TABLE shop ADD COLUMN mail_delay INTEGER NOT NULL DEFAULT 0; -- minutes
ALTER TABLE shop ADD COLUMN hold_at TEXT NOT NULL DEFAULT 'high'
    CHECK (hold_at IN ('medium', 'high'));
ALTER TABLE shop ADD COLUMN storefront_url TEXT;
ALTER TABLE shop ADD COLUMN storefront_token TEXT; -- sealed with the server's secret

-- What the fraud check saw.
ALTER TABLE orders ADD COLUMN client_ip TEXT;
ALTER TABLE orders ADD COLUMN storefront_risk TEXT
    CHECK (storefront_risk IN ('none', 'low', 'medium', 'high'));
ALTER TABLE orders ADD COLUMN fraud_level TEXT
    CHECK (fraud_level IN ('none', 'low', 'medium', 'high'));
ALTER TABLE orders ADD COLUMN fraud_signals TEXT; -- a JSON array
ALTER TABLE orders ADD COLUMN risk_pending INTEGER NOT NULL DEFAULT 0; -- the storefront has yet to answer
CREATE INDEX orders_customer ON orders (customer_id, created_at);
-- The first 19 characters are an IPv4 address, or the network that an IPv6 one belongs to.
CREATE INDEX orders_client_ip ON orders (shop_id, substr(client_ip, 1, 19), created_at)
    WHERE client_ip IS NOT NULL;
CREATE INDEX orders_refused ON orders (customer_id)
    WHERE access_status IN ('revoked', 'rejected');
CREATE INDEX customer_email ON customer (shop_id, lower(email)) WHERE email IS NOT NULL;

-- A bounce: the status stays "sent".
ALTER TABLE email ADD COLUMN bounced_at INTEGER;

ALTER TABLE job ADD COLUMN order_id INTEGER REFERENCES orders (id);
CREATE INDEX job_order ON job (order_id) WHERE order_id IS NOT NULL;

-- Since when a blob may be without references; the sweep checks that, and removes it.
ALTER TABLE blob ADD COLUMN released_at INTEGER;
CREATE INDEX blob_released ON blob (released_at) WHERE released_at IS NOT NULL;
CREATE INDEX asset_blob ON asset (sha256);
CREATE INDEX upload_blob ON upload (sha256);
UPDATE blob SET released_at = 0;
