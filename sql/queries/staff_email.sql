-- name: staff_email_insert
INSERT INTO staff_email (job_id, recipient, template, data)
    VALUES (%s:job_id, %s:recipient, %s:template, %s:data)

-- An address may have been removed, or confirmed, since the email was queued.
-- name: staff_email_of_job
SELECT e.recipient, e.template, e.data, a.asked_at, a.confirmed_at
FROM staff_email e LEFT JOIN staff_address a ON a.shop_id = %lld AND a.address = e.recipient
WHERE e.job_id = %s

-- name: staff_email_delete
DELETE FROM staff_email WHERE job_id = %s

-- name: staff_owners_reached
SELECT DISTINCT a.address FROM member m
JOIN staff_address a ON a.shop_id = m.shop_id AND a.address = COALESCE(m.email, m.user_name)
WHERE m.shop_id = %lld AND m.role = 'owner' AND a.confirmed_at IS NOT NULL
ORDER BY a.address LIMIT %lld

-- Who are told of a kind at once: they chose it, or are owners without a choice.
-- name: staff_told_now
SELECT DISTINCT a.address FROM member m
JOIN staff_address a ON a.shop_id = m.shop_id AND a.address = COALESCE(m.email, m.user_name)
WHERE m.shop_id = %lld AND (m.role = 'owner' OR m.email IS NOT NULL) AND a.confirmed_at IS NOT NULL
    AND COALESCE((SELECT n.choice FROM notice n
        WHERE n.shop_id = m.shop_id AND n.user_name = m.user_name AND n.kind = %s),
        CASE WHEN m.role = 'owner' THEN 'now' ELSE 'off' END) = 'now'
ORDER BY a.address LIMIT %lld

-- name: staff_shop_reached
SELECT s.email FROM shop s JOIN staff_address a ON a.shop_id = s.id AND a.address = s.email
WHERE s.id = %lld AND a.confirmed_at IS NOT NULL

-- Or its beginning lies in the future, because the clock was set back.
-- part: day_is_over
(staff_email_budget.began_at <= excluded.began_at - 86400000000 OR staff_email_budget.began_at > excluded.began_at)

-- Counts one more email within the day that the first email began; no row when the limit is reached.
-- name: staff_budget_take
INSERT INTO staff_email_budget (name, began_at, taken) VALUES (%s:name, %lld:now, 1)
ON CONFLICT (name) DO UPDATE SET
    taken = CASE WHEN {{day_is_over}} THEN 1 ELSE staff_email_budget.taken + 1 END,
    began_at = CASE WHEN {{day_is_over}} THEN excluded.began_at ELSE staff_email_budget.began_at END
WHERE {{day_is_over}} OR staff_email_budget.taken < %lld:most
RETURNING taken

-- Each email removes some old rows.
-- name: staff_budget_prune
-- dialect: sqlite3
DELETE FROM staff_email_budget WHERE name IN (
    SELECT b.name FROM staff_email_budget b WHERE b.began_at < %lld:began_at ORDER BY b.began_at LIMIT 10)

-- name: staff_budget_prune
-- dialect: pgsql
DELETE FROM staff_email_budget WHERE name = ANY (ARRAY(
    SELECT b.name FROM staff_email_budget b WHERE b.began_at < %lld:began_at ORDER BY b.began_at LIMIT 10
    FOR UPDATE SKIP LOCKED))
