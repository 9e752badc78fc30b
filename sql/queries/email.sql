-- name: email_insert
INSERT INTO email (shop_id, order_id, recipient, message_id, status, held, is_late, help_id, attempts, request_id,
    created_at)
VALUES (%lld:shop_id, %lld:order_id, %s:recipient, %s:message_id, %s:status, %lld:held, %lld:is_late, %lld:help_id?0, 0,
    %s:request_id, %lld:now)
RETURNING id

-- name: email_latest
SELECT {{email_columns}} FROM email e WHERE e.order_id = %lld ORDER BY e.id DESC LIMIT 1

-- name: emails_of_order
SELECT e.id, {{email_columns}}, e.created_at, e.response FROM email e
WHERE e.order_id = %lld AND e.id < %lld:before ORDER BY e.id DESC LIMIT %lld

-- An email that is being sent can't be held any more.
-- name: email_cancel_jobs
UPDATE job SET status = 'cancelled', due_at = NULL, finished_at = %lld:now
WHERE status = 'queued'
    AND email_id IN (SELECT id FROM email WHERE order_id = %lld AND status = 'queued' AND held = 0)
RETURNING email_id

-- name: email_hold
UPDATE email SET held = 1, status = 'queued' WHERE id {{in_given}}

-- Locks the order: an approval either waits for this transaction, or has been committed before.
-- name: email_lock_order
SELECT o.access_status FROM orders o
WHERE o.id = (SELECT order_id FROM email WHERE id = %lld)
{{for_no_key_update}}

-- name: email_cancel_job
UPDATE job SET status = 'cancelled', due_at = NULL, finished_at = %lld:now
WHERE id = %s AND status = 'queued'

-- Held emails go to the order's current address.
-- name: email_release
UPDATE email SET held = 0, recipient = COALESCE((SELECT {{recipient:o}} FROM orders o WHERE o.id = email.order_id), recipient)
WHERE order_id = %lld AND held = 1
RETURNING id, recipient

-- An email without an address waits for a look-up at the storefront as long as it is queued; the order
-- may have been held, or released, meanwhile.
-- name: email_address
UPDATE email SET recipient = %s,
    held = (SELECT CASE WHEN o.access_status = 'held' THEN 1 ELSE 0 END FROM orders o
        WHERE o.id = email.order_id)
WHERE order_id {{in_given}} AND recipient IS NULL AND status = 'queued'
RETURNING id, held

-- An email that is being sent goes there if it is tried again.
-- name: emails_redirect
UPDATE email SET recipient = %s WHERE order_id {{in_given}} AND recipient IS NOT NULL AND status = 'queued'

-- name: email_no_recipient
UPDATE email SET status = 'no_recipient', held = 0, last_error = %s
WHERE order_id = %lld AND recipient IS NULL AND status = 'queued'

-- Only the newest email, because it lists everything.
-- name: email_await
UPDATE email SET status = 'queued', last_error = NULL,
    held = (SELECT CASE WHEN o.access_status = 'held' THEN 1 ELSE 0 END FROM orders o
        WHERE o.id = email.order_id)
WHERE id = (SELECT max(l.id) FROM email l WHERE l.order_id = %lld)
    AND recipient IS NULL AND status = 'no_recipient'

-- name: emails_by_id
SELECT e.id, e.order_id, e.recipient, e.message_id, e.is_late, COALESCE(s.sender_name, s.name) AS from_name,
    COALESCE(s.reply_to, s.email) AS reply_to, e.help_id,
    (SELECT h.answer FROM help_request h WHERE h.id = e.help_id) AS help_answer
FROM email e JOIN shop s ON s.id = e.shop_id WHERE e.id {{in_given}}

-- name: email_delay
SELECT e.created_at, s.mail_delay FROM email e JOIN shop s ON s.id = e.shop_id WHERE e.id = %lld

-- The update keeps workers from claiming the job until the transaction ends.
-- name: email_delayed
UPDATE job SET due_at = due_at WHERE type = 'email' AND status = 'queued' AND attempts = 0 AND due_at > %lld:now
    AND email_id = (SELECT max(id) FROM email WHERE order_id = %lld AND help_id IS NULL)
RETURNING id

-- A bounce can arrive before the result that the message was accepted. The order's address may have changed
-- while the email was being sent to the former one.
-- name: email_result
UPDATE email SET status = %s, attempts = %lld, recipient = COALESCE(%s:sent_to, recipient),
    last_error = CASE WHEN bounced_at IS NULL THEN %s:error ELSE last_error END, response = %s:response,
    sent_at = %lld?0
WHERE id = %lld

-- name: email_bounced
UPDATE email SET bounced_at = %lld:now, last_error = %s WHERE id = %lld AND bounced_at IS NULL

-- The newest emails that were tried, among the newest thousand.
-- name: emails_tried
SELECT e_rows.status, e_rows.last_error, e_rows.created_at
FROM (SELECT id, status, last_error, created_at, attempts FROM email ORDER BY id DESC LIMIT 1000) e_rows
WHERE e_rows.attempts > 0 ORDER BY e_rows.id DESC LIMIT %lld

-- An email as the list of a shop's emails shows it.
-- part: email_line
e.id, e.created_at, {{email_columns}},
(SELECT o.storefront_order_id FROM orders o WHERE o.id = e.order_id) AS storefront_order_id,
(SELECT o.name FROM orders o WHERE o.id = e.order_id) AS order_name,
(SELECT count(*) FROM (SELECT 1 FROM email f WHERE f.order_id = e.order_id AND f.id < e.id LIMIT 1) f_rows)
    AS earlier

-- name: email_page
SELECT {{email_line}} FROM email e WHERE e.shop_id = %lld AND e.id > 0 AND e.id < %lld:before
ORDER BY e.id DESC LIMIT %lld

-- name: email_page_of_fate
SELECT {{email_line}} FROM email e WHERE e.shop_id = %lld AND {{email_fate}} = %s:fate AND e.id < %lld:before
ORDER BY e.id DESC LIMIT %lld

-- part: address_folded
-- dialect: sqlite3
lower(recipient)

-- part: address_folded
-- dialect: pgsql
(lower(recipient) COLLATE "C")

-- name: email_page_of_order
SELECT {{email_line}} FROM email e WHERE e.order_id = %lld AND e.id < %lld:before
    AND (%s:fate IS NULL OR {{email_fate}} = %s:fate)
    AND (%s:prefix IS NULL OR ({{address_folded}} >= lower(%s:prefix) AND {{address_folded}} < lower(%s:prefix_end)))
ORDER BY e.id DESC LIMIT %lld

-- To addresses that begin alike: of a thousand emails, those that fit. Of one address the newest thousand.
-- name: email_page_of_address
SELECT {{email_line}} FROM (
    SELECT * FROM email
    WHERE shop_id = %lld AND {{address_folded}} >= lower(%s:prefix) AND {{address_folded}} < lower(%s:prefix_end)
        AND recipient IS NOT NULL
    ORDER BY {{address_folded}} DESC, id DESC LIMIT 1000
) e
WHERE e.id < %lld:before AND (%s:fate IS NULL OR {{email_fate}} = %s:fate)
ORDER BY e.id DESC LIMIT %lld
