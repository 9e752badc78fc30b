-- Which build made a schema (NULL: one that did not say), and a row for each httpd whose background
-- process works on this database.
ALTER TABLE schema_migration ADD COLUMN build TEXT;
CREATE TABLE node (
    host TEXT NOT NULL,
    pid_file TEXT NOT NULL,
    pid INTEGER NOT NULL, -- of the background process
    build TEXT NOT NULL,
    beat_at INTEGER NOT NULL, -- by the database's clock
    PRIMARY KEY (host, pid_file)
) WITHOUT ROWID;
