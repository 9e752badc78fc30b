-- A copy of the database, and what a database is told that was restored from it.

-- A name of this transaction's snapshot, for pg_dump.
-- name: snapshot_export
-- dialect: sqlite3
SELECT ''

-- name: snapshot_export
-- dialect: pgsql
SELECT pg_export_snapshot()

-- No id is given twice: those of the rows that came after the backup are skipped.
-- name: restored_skip_ids
-- dialect: sqlite3
UPDATE sqlite_sequence SET seq = seq + %lld:ids WHERE seq > 0 RETURNING seq

-- name: restored_skip_ids
-- dialect: pgsql
SELECT setval(format('%%I.%%I', schemaname, sequencename)::regclass, last_value + %lld:ids) FROM pg_sequences
WHERE schemaname = current_schema() AND last_value IS NOT NULL

-- Nor the number of an order that was made by hand.
-- name: restored_skip_numbers
UPDATE shop SET orders_by_hand = orders_by_hand + %lld:numbers WHERE orders_by_hand > 0

-- name: restored_sign_out
DELETE FROM staff_session WHERE expires_at > 0

-- A backup that was made while the service was closed to changes.
-- name: restored_open
DELETE FROM maintenance WHERE id = 1

-- name: restored_forget_nodes
DELETE FROM node WHERE pid > 0

-- Emails that waited when the backup was made may have left since.
-- part: mail_of_types
UPDATE job SET due_at = NULL, lease_owner = NULL, finished_at = %lld:now, updated_at = {{later}},
    error_code = 'restored', error_message = %s:message,

-- name: restored_emails
{{mail_of_types}} status = 'failed'
WHERE type = 'email' AND status IN ('queued', 'running')

-- name: restored_letters
{{mail_of_types}} status = 'cancelled'
WHERE type IN ('staff_email', 'find_email', 'tell_buyers', 'news_email') AND status IN ('queued', 'running')

-- Also those that wait for a look-up of their address. Held ones have not left before their order was approved.
-- name: restored_emails_failed
UPDATE email SET status = 'failed', last_error = %s:message WHERE status = 'queued' AND held = 0

-- name: restored_staff_emails
DELETE FROM staff_email WHERE job_id > ''

-- name: restored_finds
UPDATE find_request SET due_at = NULL WHERE due_at IS NOT NULL

-- Of new versions nobody is told twice.
-- name: restored_news
DELETE FROM news_item WHERE order_id > 0

-- name: restored_news_addresses
UPDATE news_address SET due_at = NULL, sent_at = COALESCE(sent_at, 0) WHERE due_at IS NOT NULL

-- name: restored_notices
UPDATE notice SET waiting = 0, due_at = NULL WHERE due_at IS NOT NULL

-- Buyers who were given a product since get it again, but no second email.
-- name: restored_moves
UPDATE move SET send_email = 0 WHERE send_email = 1
    AND job_id IN (SELECT id FROM job WHERE type = 'buyers_move' AND status IN ('queued', 'running'))

-- name: restored_hold
SELECT 1 FROM storage_hold WHERE id = %s
