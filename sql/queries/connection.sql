-- Only for PostgreSQL; SQLite has no server that limits connections. Others' connections are those of other
-- databases and roles.

-- name: connections
-- dialect: sqlite3
SELECT 0 AS most, 0 AS reserved, 0 AS used, 0 AS others

-- name: connections
-- dialect: pgsql
SELECT current_setting('max_connections')::bigint AS most,
    current_setting('superuser_reserved_connections')::bigint
        + COALESCE(current_setting('reserved_connections', true)::bigint, 0) AS reserved,
    count(*) AS used,
    count(*) FILTER (WHERE datname <> current_database() OR usename <> current_user) AS others
FROM pg_stat_activity WHERE datname IS NOT NULL AND usename IS NOT NULL
