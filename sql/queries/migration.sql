-- name: migration_insert
INSERT INTO schema_migration (version, name, fingerprint, build, applied_at)
VALUES (%lld:version, %s:name, %s:fingerprint, %s:build, %lld:now)

-- name: migration_fingerprints
SELECT version, fingerprint FROM schema_migration ORDER BY version

-- How many columns the table has, none if it is missing, and whether it has one of fingerprints.
-- name: migration_columns
-- dialect: sqlite3
SELECT count(*), count(*) FILTER (WHERE name = 'fingerprint') FROM pragma_table_info('schema_migration')

-- name: migration_columns
-- dialect: pgsql
SELECT count(*), count(*) FILTER (WHERE attname = 'fingerprint')
FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass('schema_migration') AND attnum > 0

-- name: migration_build
SELECT build FROM schema_migration WHERE version = %lld
