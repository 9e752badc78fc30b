-- name: migration_insert
INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, applied_at)
VALUES (%lld:version, %s:name, %s:fingerprint, %s:build, %lld:runs_with, %lld:now)

-- name: migrations
SELECT version, fingerprint, build, runs_with FROM schema_migration ORDER BY version

-- How many columns the table has, none if it is missing, and how many of these two.
-- name: migration_columns
-- dialect: sqlite3
SELECT count(*), count(*) FILTER (WHERE name IN ('fingerprint', 'runs_with'))
FROM pragma_table_info('schema_migration')

-- name: migration_columns
-- dialect: pgsql
SELECT count(*), count(*) FILTER (WHERE attname IN ('fingerprint', 'runs_with'))
FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass('schema_migration') AND attnum > 0

-- The lowest version that a build must know to run on this schema, and whether maintenance is on.
-- name: migration_runs_with
SELECT max(runs_with) AS runs_with, (SELECT count(*) FROM maintenance WHERE id = 1) AS closed
FROM schema_migration
