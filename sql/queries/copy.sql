-- The schema as the database itself knows it, for db/copy.c: a table that is added is copied, too.  A database
-- keeps its own schema_migration and maintenance, and what lives only as long as a process.

-- name: copy_columns
-- dialect: sqlite3
SELECT t.name AS table_name, c.name, CASE WHEN c.type = 'TEXT' THEN 1 ELSE 0 END AS is_text, c.pk AS key_at
FROM sqlite_master t JOIN pragma_table_info(t.name) c
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%%' ESCAPE '!'
    AND t.name NOT IN ('schema_migration', 'node', 'meter', 'maintenance', 'alert', 'alert_finding')
ORDER BY t.name, c.name

-- name: copy_columns
-- dialect: pgsql
SELECT t.relname AS table_name, c.attname AS name, CASE WHEN c.atttypid = 'text'::regtype THEN 1 ELSE 0 END AS is_text,
    COALESCE(array_position(i.indkey::smallint[], c.attnum) + 1, 0) AS key_at
FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
    AND t.relname NOT IN ('schema_migration', 'node', 'meter', 'maintenance', 'alert', 'alert_finding')
ORDER BY t.relname COLLATE "C", c.attname COLLATE "C"

-- name: copy_references
-- dialect: sqlite3
SELECT t.name AS child, f."table" AS parent FROM sqlite_master t JOIN pragma_foreign_key_list(t.name) f
WHERE t.type = 'table'

-- name: copy_references
-- dialect: pgsql
SELECT t.relname AS child, o.relname AS parent FROM pg_constraint f
JOIN pg_class t ON t.oid = f.conrelid JOIN pg_class o ON o.oid = f.confrelid
WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace

-- The last number that an identity has given; no row for a table without one that has given any.
-- name: copy_sequence
-- dialect: sqlite3
SELECT seq FROM sqlite_sequence WHERE name = %s

-- name: copy_sequence
-- dialect: pgsql
SELECT last_value AS seq FROM pg_sequences
WHERE schemaname = current_schema() AND sequencename = %s:name || '_id_seq' AND last_value IS NOT NULL
