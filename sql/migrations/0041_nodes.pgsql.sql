-- Which build made a schema (NULL: one that did not say), and a row for each httpd whose background
-- process works on this database.
ALTER TABLE schema_migration ADD COLUMN build TEXT;
CREATE TABLE node (
    host TEXT COLLATE "C" NOT NULL,
    pid_file TEXT COLLATE "C" NOT NULL,
    pid BIGINT NOT NULL, -- of the background process
    build TEXT NOT NULL,
    beat_at BIGINT NOT NULL, -- by the database's clock
    PRIMARY KEY (host, pid_file)
);
