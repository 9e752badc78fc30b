-- The one row of maintenance exists while the service is closed to changes (mod_downloads/core/closed.h).

-- name: maintenance_begin
INSERT INTO maintenance (id, since, reason) VALUES (1, {{now}}, %s:reason)
ON CONFLICT (id) DO UPDATE SET reason = COALESCE(excluded.reason, maintenance.reason)

-- name: maintenance_end
DELETE FROM maintenance WHERE id = 1 AND copy_of IS NULL

-- name: maintenance
SELECT since, reason, copy_of FROM maintenance WHERE id = 1

-- name: maintenance_copy_begin
INSERT INTO maintenance (id, since, reason, copy_of) VALUES (1, %lld:since, %s:reason, %s:copy_of)

-- name: maintenance_copy_end
UPDATE maintenance SET copy_of = NULL WHERE id = 1

-- The transactions that may have begun to write before everybody knew.
-- part: transactions_before
-- dialect: sqlite3
%lld:before * 0

-- part: transactions_before
-- dialect: pgsql
(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user
    AND pid <> pg_backend_pid() AND xact_start < to_timestamp(%lld:before / 1000000.0))

-- name: maintenance_running
SELECT (SELECT count(*) FROM download_transfer) AS downloads,
    (SELECT count(*) FROM upload u WHERE u.status = 'open' AND u.writer IN (SELECT m.id FROM meter m)) AS uploads,
    (SELECT count(*) FROM job j WHERE j.lease_owner IS NOT NULL AND j.due_at IS NULL) AS jobs,
    {{transactions_before}} AS transactions,
    (SELECT count(*) FROM storage_hold WHERE lapses_at > {{now}}) AS backups
