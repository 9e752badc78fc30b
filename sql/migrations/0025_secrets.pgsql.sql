-- The server's secret can be replaced: which one has signed a key (NULL: not known), and since when each
-- signs.  A third scope, between the other two.
ALTER TABLE api_key ADD COLUMN secret_id TEXT;
ALTER TABLE api_key DROP CONSTRAINT api_key_scope_check;
ALTER TABLE api_key ADD CONSTRAINT api_key_scope_check CHECK (scope IN ('full', 'deliver', 'read'));
CREATE TABLE secret (
    id TEXT COLLATE "C" PRIMARY KEY,
    since BIGINT NOT NULL
);
