-- name: migration_insert
INSERT INTO schema_migration (version, name, applied_at) VALUES (%lld:version, %s:name, %lld:now)

-- name: migration_version
SELECT COALESCE(max(version), 0) FROM schema_migration

-- name: migration_table_count
-- dialect: sqlite3
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migration'

-- name: migration_table_count
-- dialect: pgsql
SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('schema_migration')

-- name: migration_built
UPDATE schema_migration SET build = %s WHERE version = %lld

-- name: migration_build
SELECT build FROM schema_migration WHERE version = %lld
