-- The storage folder that belongs with this database: what its file "identity" says.
CREATE TABLE storage (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT COLLATE "C" NOT NULL
);
