-- Every change by a person or a key.  id is in the order of time.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    shop_id INTEGER, -- NULL: of no shop, such as an operator
    noun TEXT NOT NULL,
    noun_id TEXT,
    action TEXT NOT NULL,
    via TEXT NOT NULL CHECK (via IN ('api', 'settings', 'command')),
    key_id TEXT,
    user_name TEXT,
    detail TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX audit_shop ON audit (shop_id, id);
