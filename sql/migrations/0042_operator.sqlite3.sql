-- Failed jobs are found whatever their shop: an operator tries all of them again.
CREATE INDEX job_failed_id ON job (id) WHERE status = 'failed';

-- Who copies the storage folder keeps the service from removing files meanwhile.
CREATE TABLE storage_hold (
    id TEXT PRIMARY KEY,
    user_name TEXT NOT NULL,
    held_at INTEGER NOT NULL
) WITHOUT ROWID;

-- A client's address goes with the fraud check's window.
CREATE INDEX orders_client_ip_kept ON orders (created_at) WHERE client_ip IS NOT NULL;
