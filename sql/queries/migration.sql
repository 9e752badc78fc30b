-- name: migration_insert
INSERT INTO schema_migration (version, name, applied_at) VALUES (%lld, %s, %lld)

-- name: migration_version
SELECT COALESCE(max(version), 0) FROM schema_migration
