-- Old rows are removed in batches, in the order of a key (mod_downloads/core/prune.h). The first statement of
-- each pair finds the key and time of a batch's last row. The second deletes those rows of the batch that ended
-- before a given time.

-- name: prune_jobs_end
SELECT id, created_at FROM job WHERE id > %s:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- A cancelled job has not ended until its worker has cleaned up.
-- name: prune_jobs
DELETE FROM job WHERE id > %s:after AND id <= %s:end AND finished_at < %lld:before AND due_at IS NULL
    AND lease_owner IS NULL

-- name: prune_uploads_end
SELECT id, created_at FROM upload WHERE id > %s:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- name: prune_uploads
DELETE FROM upload WHERE id > %s:after AND id <= %s:end AND status <> 'open'
    AND updated_at < %lld:before
    AND (SELECT count(*) FROM job j WHERE j.upload_id = upload.id) = 0

-- name: prune_emails_end
SELECT id, created_at FROM email WHERE id > %lld:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- An order's newest email is part of its answer, and stays, but not an answer to a request for help.
-- name: prune_emails
DELETE FROM email WHERE id > %lld:after AND id <= %lld:end AND created_at < %lld:before
    AND (help_id IS NOT NULL OR id < (SELECT l.id FROM email l WHERE l.order_id = email.order_id AND l.help_id IS NULL
        ORDER BY l.id DESC LIMIT 1))
    AND (SELECT count(*) FROM job j WHERE j.email_id = email.id) = 0

-- name: prune_events_end
SELECT id, created_at FROM event WHERE id > %lld:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- name: prune_events
DELETE FROM event WHERE id > %lld:after AND id <= %lld:end AND created_at < %lld:before AND number IS NOT NULL

-- name: prune_webhooks_end
SELECT id, created_at FROM webhook_delivery WHERE id > %lld:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- name: prune_webhooks
DELETE FROM webhook_delivery WHERE id > %lld:after AND id <= %lld:end AND created_at < %lld:before

-- name: prune_downloads_end
SELECT opened_at, opened_at FROM download_session WHERE opened_at > %lld:after ORDER BY opened_at
    LIMIT 1 OFFSET %lld:offset

-- name: prune_downloads
DELETE FROM download_session WHERE opened_at > %lld:after AND opened_at <= %lld:end AND opened_at < %lld:before
    AND status <> 'open' AND (SELECT count(*) FROM download_transfer t
        WHERE t.session_id = download_session.id AND t.generation = download_session.generation) = 0

-- name: prune_visits_end
SELECT visited_at, visited_at FROM order_visit WHERE visited_at > %lld:after ORDER BY visited_at
    LIMIT 1 OFFSET %lld:offset

-- name: prune_visits
DELETE FROM order_visit WHERE visited_at > %lld:after AND visited_at <= %lld:end AND visited_at < %lld:before

-- name: prune_audit_end
SELECT id, created_at FROM audit WHERE id > %lld:after ORDER BY id LIMIT 1 OFFSET %lld:offset

-- name: prune_audit
DELETE FROM audit WHERE id > %lld:after AND id <= %lld:end AND created_at < %lld:before

-- name: prune_answers_end
SELECT created_at, created_at FROM idempotency WHERE created_at > %lld:after ORDER BY created_at
    LIMIT 1 OFFSET %lld:offset

-- name: prune_answers
DELETE FROM idempotency WHERE created_at > %lld:after AND created_at <= %lld:end AND created_at < %lld:before

-- An order that waits for the storefront's risk still needs its IP address for the check.
-- name: prune_addresses_end
SELECT created_at, created_at FROM orders
WHERE created_at > %lld:after AND client_ip IS NOT NULL ORDER BY created_at LIMIT 1 OFFSET %lld:offset

-- name: prune_addresses
UPDATE orders SET client_ip = NULL
WHERE created_at > %lld:after AND created_at <= %lld:end AND created_at < %lld:before AND client_ip IS NOT NULL
    AND risk_pending = 0

-- name: prune_finds_end
SELECT asked_at, asked_at FROM find_request WHERE asked_at > %lld:after ORDER BY asked_at LIMIT 1 OFFSET %lld:offset

-- name: prune_finds
DELETE FROM find_request WHERE asked_at > %lld:after AND asked_at <= %lld:end AND asked_at < %lld:before
    AND COALESCE(sent_at, 0) < %lld:before
