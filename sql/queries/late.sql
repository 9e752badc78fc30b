-- An order whose newest email was sent while something was missing owes its customer another one. A job,
-- late_email, waits for that; it has the id of that email.

-- name: late_mark
UPDATE email SET is_partial = 1 WHERE id = %lld

-- The order is locked.
-- name: late_open
SELECT id FROM (
    SELECT (SELECT j.id FROM job j
        WHERE j.email_id = e.id AND j.type = 'late_email' AND j.status IN ('queued', 'running') LIMIT 1) AS id
    FROM email e WHERE e.order_id = %lld
) j_rows
WHERE id IS NOT NULL LIMIT 1

-- An order by its email: its newest email, and when the last late one was asked for.
-- name: late_newest
SELECT e.id, e.order_id, e.status, e.is_partial, e.created_at,
    (SELECT l.created_at FROM email l WHERE l.order_id = e.order_id AND l.is_late = 1
        ORDER BY l.id DESC LIMIT 1) AS late_at
FROM email e
WHERE e.order_id = (SELECT k.order_id FROM email k WHERE k.id = %lld:email_id) AND e.help_id IS NULL
ORDER BY e.id DESC LIMIT 1
