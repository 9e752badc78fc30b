-- Where a shop's system is told of notices.  The job sends what is due; it stays as long as its endpoint.
CREATE TABLE webhook_endpoint (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL,
    job_id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    description TEXT,
    types TEXT, -- a JSON array; NULL: all
    secret TEXT NOT NULL, -- sealed, as the next
    old_secret TEXT, -- signs as well until old_until
    old_until INTEGER,
    is_active INTEGER NOT NULL,
    failing_since INTEGER, -- the first failure since the last success
    disabled_at INTEGER, -- by the service
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE INDEX webhook_endpoint_shop ON webhook_endpoint (shop_id, id) WHERE deleted_at IS NULL;

CREATE TABLE webhook_delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint_id INTEGER NOT NULL,
    notice_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    attempts INTEGER NOT NULL, -- since it was asked for
    due_at INTEGER, -- NULL: it is over
    response_status INTEGER,
    response_body TEXT, -- its beginning
    error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, due_at) WHERE due_at IS NOT NULL;

-- A notice that is for this endpoint alone.
ALTER TABLE notice ADD COLUMN endpoint_id INTEGER;
