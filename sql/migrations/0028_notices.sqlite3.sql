-- What a shop's system is told of: the API's events.  number counts a shop's notices in the order in which
-- they were committed; the background process gives it.
CREATE TABLE notice (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shop_id INTEGER NOT NULL,
    type TEXT NOT NULL,
    order_id INTEGER,
    data TEXT NOT NULL, -- a JSON object
    created_at INTEGER NOT NULL,
    number INTEGER
);
CREATE INDEX notice_waiting ON notice (id) WHERE number IS NULL;
CREATE INDEX notice_number ON notice (shop_id, number) WHERE number > 0;

-- The last number that the notices of a shop, by its id, have got.
CREATE TABLE notice_count (
    id INTEGER PRIMARY KEY,
    last INTEGER NOT NULL
);
