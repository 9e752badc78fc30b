-- What the metrics ask of the database, every few seconds at most.

-- Which jobs of a lane are due, and which later, both up to a limit; and since when the oldest has been due.
-- name: gauge_jobs
SELECT type, is_due, count(*) AS jobs, min(due_at) AS oldest
FROM (
    SELECT type, is_due, due_at FROM (SELECT type, 1 AS is_due, due_at FROM job
        WHERE lane = %s AND due_at <= %lld:now ORDER BY due_at LIMIT %lld) d_rows
    UNION ALL
    SELECT type, is_due, due_at FROM (SELECT type, 0 AS is_due, due_at FROM job
        WHERE lane = %s AND due_at > %lld:now ORDER BY due_at LIMIT %lld) l_rows
) w_rows
GROUP BY type, is_due

-- name: gauge_jobs_running
SELECT type, count(*) AS jobs, min(started_at) AS oldest FROM job
WHERE lease_owner IS NOT NULL AND status = 'running' GROUP BY type

-- name: gauge_webhook_endpoints
SELECT count(*) AS failing FROM (SELECT 1 AS one FROM webhook_endpoint
    WHERE deleted_at IS NULL AND (disabled_at IS NOT NULL OR (is_active = 1 AND failing_since IS NOT NULL))
    LIMIT %lld) f_rows

-- name: gauge_database
-- dialect: sqlite3
SELECT (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size()) AS bytes

-- name: gauge_database
-- dialect: pgsql
SELECT pg_database_size(current_database()) AS bytes
