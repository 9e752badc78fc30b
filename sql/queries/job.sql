-- name: job_insert
INSERT INTO job (id, shop_id, type, lane, asset_id, email_id, order_id, upload_id, source_url,
    expected_sha256, status, attempts, max_attempts, due_at, lease_token, bytes_received,
    request_id, created_at, updated_at)
VALUES (%s:id, %lld:shop_id, %s:type, %s:lane, %lld:asset_id?0, %lld:email_id?0, %lld:order_id?0, %s:upload_id,
    %s:source_url, %s:expected_sha256, 'queued', 0, %lld:max_attempts, %lld:due_at, 0, 0, %s:request_id,
    %lld:created_at, %lld:created_at)

-- part: job_columns
id, type, status, asset_id, email_id, shop_id, bytes_received, bytes_total, attempts,
max_attempts, due_at, error_code, error_message, created_at, started_at, finished_at,
lane, source_url, expected_sha256, written, validator, lease_token, upload_id, order_id,
(SELECT o.storefront_order_id FROM orders o WHERE o.id = job.order_id) AS storefront_order_id, interruptions,
updated_at, request_id

-- name: job_by_id
SELECT {{job_columns}} FROM job WHERE id = %s

-- name: job_of_shop
SELECT {{job_columns}} FROM job WHERE id = %s AND shop_id = %lld AND {{type_shown}}

-- name: job_list
SELECT {{job_columns}} FROM job WHERE id < %s:before ORDER BY id DESC LIMIT %lld

-- name: job_list_of_shop
SELECT {{job_columns}} FROM job WHERE shop_id = %lld AND id < %s:before ORDER BY id DESC LIMIT %lld

-- How many jobs have each status.
-- name: job_count
SELECT status, count(*) AS jobs FROM job GROUP BY status

-- name: job_count_of_shop
SELECT status, count(*) FROM job WHERE shop_id = %lld GROUP BY status

-- How many jobs of a lane are due, and how many later, both up to a limit; and since when the oldest has been.
-- name: job_lane
SELECT
    (SELECT count(*) FROM (SELECT 1 AS one FROM job WHERE lane = %s AND due_at <= %lld:now
        ORDER BY due_at LIMIT %lld) w_rows) AS waiting,
    (SELECT count(*) FROM (SELECT 1 AS one FROM job WHERE lane = %s AND due_at > %lld:now
        ORDER BY due_at LIMIT %lld) l_rows) AS later,
    (SELECT due_at FROM job WHERE lane = %s AND due_at <= %lld:now ORDER BY due_at LIMIT 1) AS oldest

-- name: job_lane_of_shop
SELECT
    (SELECT count(*) FROM (SELECT 1 AS one FROM job
        WHERE lane = %s AND {{due_shop}} = %lld:shop_id AND due_at <= %lld:now
        ORDER BY due_at LIMIT %lld) w_rows) AS waiting,
    (SELECT count(*) FROM (SELECT 1 AS one FROM job
        WHERE lane = %s AND {{due_shop}} = %lld:shop_id AND due_at > %lld:now
        ORDER BY due_at LIMIT %lld) l_rows) AS later,
    (SELECT due_at FROM job WHERE lane = %s AND {{due_shop}} = %lld:shop_id AND due_at <= %lld:now
        ORDER BY due_at LIMIT 1) AS oldest

-- Each lane's jobs that workers run, of a shop or, with 0, of all.
-- name: jobs_running
SELECT lane, count(*) AS jobs FROM job
WHERE lease_owner IS NOT NULL AND status = 'running' AND (%lld:shop_id = 0 OR +shop_id = %lld:shop_id)
GROUP BY lane

-- name: jobs_failed
SELECT id FROM job
WHERE status = 'failed' AND id > %s:after AND (%lld:shop_id = 0 OR shop_id = %lld)
    AND (%s:type IS NULL OR type = %s)
    AND COALESCE(finished_at, created_at) >= %lld:since
ORDER BY id LIMIT %lld

-- The number of the order that an email is about.
-- name: job_order_of_email
SELECT o.storefront_order_id FROM email e JOIN orders o ON o.id = e.order_id WHERE e.id = %lld

-- name: job_page
SELECT {{job_columns}} FROM job WHERE shop_id = %lld AND {{type_shown}} AND id < %s:before
ORDER BY id DESC LIMIT %lld

-- name: job_page_of_asset
SELECT {{job_columns}} FROM job WHERE asset_id = %lld AND +shop_id = %lld AND {{type_shown}} AND id < %s:before
ORDER BY id DESC LIMIT %lld

-- name: job_page_failed
SELECT {{job_columns}} FROM job WHERE shop_id = %lld AND status = 'failed' AND {{type_shown}} AND id < %s:before
ORDER BY id DESC LIMIT %lld

-- name: job_open_of_asset
SELECT {{job_columns}} FROM job WHERE asset_id = %lld AND status IN ('queued', 'running') AND id <> %s:id
    LIMIT 1

-- A job can be claimed once due_at has passed. For a queued job that is the time of its next attempt. A running
-- job has none until others see that its worker no longer renews the lease (job_expire), or the worker's
-- successor comes (job_inherit). The job then goes on with the same attempt.
-- part: job_claimed
UPDATE job SET status = 'running', lease_token = lease_token + 1,
    attempts = attempts + CASE WHEN status = 'running' THEN 0 ELSE 1 END,
    lease_owner = %s, due_at = NULL, started_at = COALESCE(started_at, %lld:now), updated_at = {{later}}

-- part: claimed_columns
{{job_columns}}, (SELECT s.blocked_at FROM shop s WHERE s.id = job.shop_id) AS shop_blocked_at

-- name: job_claim
-- dialect: sqlite3
{{job_claimed}}
WHERE id IN (SELECT id FROM job WHERE lane = %s AND due_at BETWEEN %lld:from AND %lld:now ORDER BY due_at
    LIMIT %lld)
RETURNING {{claimed_columns}}

-- name: job_claim
-- dialect: pgsql
{{job_claimed}}
WHERE id = ANY (ARRAY(SELECT id FROM job WHERE lane = %s AND due_at BETWEEN %lld:from AND %lld:now
    ORDER BY due_at
    LIMIT %lld FOR UPDATE SKIP LOCKED))
RETURNING {{claimed_columns}}

-- The same while shops wait for each other. The first free slot goes to the shop with the fewest running jobs,
-- and so on, round the shops. A shop with running jobs gets another one only if at least a quarter as many
-- slots as it then has stay free. So it leaves slots for a shop that comes later, and has at most four in five.
-- Shops are searched among those with running jobs, those with the oldest due jobs, and a range of ids, because
-- entries of ended jobs may lie between two shops in the index. PostgreSQL reads a shop's jobs in the order of
-- an index for this statement alone (shop_id + 0). Otherwise it would scan all shops' jobs of the lane by time,
-- or all jobs of the shop.
-- name: job_claim_shared
-- dialect: sqlite3
{{job_claimed}}
WHERE id IN (
    WITH running_rows (shop_id, jobs) AS (SELECT value, count(*) FROM json_each(%ids:running) GROUP BY value),
    candidate_rows (shop_id) AS (
        SELECT shop_id FROM running_rows
        UNION SELECT id FROM shop WHERE id > %lld:from_shop AND id <= %lld:to_shop
        UNION SELECT shop_id FROM (
            SELECT shop_id FROM job WHERE lane = %s AND due_at BETWEEN %lld:from AND %lld:now
            ORDER BY due_at LIMIT %lld)),
    waiting_rows (id, shop_id, nth) AS (
        SELECT j.id, candidate_rows.shop_id,
            COALESCE((SELECT jobs FROM running_rows WHERE running_rows.shop_id = candidate_rows.shop_id), 0)
                + row_number() OVER (PARTITION BY candidate_rows.shop_id ORDER BY j.due_at)
        FROM candidate_rows CROSS JOIN job j
        WHERE j.id IN (
            SELECT q.id FROM job q
            WHERE q.lane = %s AND q.shop_id = candidate_rows.shop_id AND q.due_at BETWEEN %lld:from AND %lld:now
            ORDER BY q.due_at LIMIT %lld)),
    turn_rows (id, nth, slot) AS (
        SELECT id, nth, row_number() OVER (ORDER BY nth, shop_id <= %lld:after, shop_id) FROM waiting_rows)
    SELECT id FROM turn_rows WHERE slot <= %lld:limit AND (nth = 1 OR nth <= 4 * (%lld:limit - slot)))
    AND due_at <= %lld:now
RETURNING {{claimed_columns}}

-- name: job_claim_shared
-- dialect: pgsql
{{job_claimed}}
WHERE id = ANY (ARRAY(
    WITH running_rows (shop_id, jobs) AS (
        SELECT given.id, count(*) FROM unnest(%ids:running) AS given (id) GROUP BY given.id),
    candidate_rows (shop_id) AS (
        SELECT shop_id FROM running_rows
        UNION SELECT id FROM shop WHERE id > %lld:from_shop AND id <= %lld:to_shop
        UNION (
            SELECT shop_id FROM job WHERE lane = %s AND due_at BETWEEN %lld:from AND %lld:now
            ORDER BY due_at LIMIT %lld)),
    waiting_rows (id, shop_id, nth) AS (
        SELECT w.id, c.shop_id,
            COALESCE((SELECT r.jobs FROM running_rows r WHERE r.shop_id = c.shop_id), 0)
                + row_number() OVER (PARTITION BY c.shop_id ORDER BY w.due_at)
        FROM candidate_rows c CROSS JOIN LATERAL (
            SELECT q.id, q.due_at FROM job q
            WHERE q.lane = %s AND (q.shop_id + 0, q.due_at) >= (c.shop_id, %lld:from)
                AND (q.shop_id + 0, q.due_at) <= (c.shop_id, %lld:now) AND q.due_at IS NOT NULL
            ORDER BY q.shop_id + 0, q.due_at LIMIT %lld) w),
    turn_rows (id, nth, slot) AS (
        SELECT id, nth, row_number() OVER (ORDER BY nth, shop_id <= %lld:after, shop_id) FROM waiting_rows)
    SELECT j.id FROM job j
    WHERE j.id = ANY (ARRAY(
            SELECT id FROM turn_rows WHERE slot <= %lld:limit AND (nth = 1 OR nth <= 4 * (%lld:limit - slot))))
        AND j.due_at <= %lld:now
    FOR UPDATE SKIP LOCKED))
RETURNING {{claimed_columns}}

-- When the earliest job of each lane is due, in the order of mdl_job_lane_t, and the newest shop.  With min()
-- PostgreSQL might read all jobs.
-- name: job_look
SELECT
    (SELECT due_at FROM job WHERE lane = 'small' AND due_at BETWEEN %lld:small AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'bulk' AND due_at BETWEEN %lld:bulk AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'hash' AND due_at BETWEEN %lld:hash AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'mail' AND due_at BETWEEN %lld:mail AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'lookup' AND due_at BETWEEN %lld:lookup AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'webhook' AND due_at BETWEEN %lld:webhook AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'orders' AND due_at BETWEEN %lld:orders AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'news' AND due_at BETWEEN %lld:news AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT due_at FROM job WHERE lane = 'cleanup' AND due_at BETWEEN %lld:cleanup AND %lld:until
     ORDER BY due_at LIMIT 1),
    (SELECT id FROM shop ORDER BY id DESC LIMIT 1)

-- The queued jobs of a blocked shop are moved to lanes that no worker claims from, so that claims don't have to
-- skip them. Some jobs after the given id, by id.
-- name: jobs_hold
-- dialect: sqlite3
UPDATE job SET lane = 'blocked-' || lane
WHERE id IN (SELECT id FROM job WHERE shop_id = %lld AND id > %s:after AND +status = 'queued'
        AND substr(lane, 1, 8) <> 'blocked-' ORDER BY id LIMIT %lld)
    AND EXISTS (SELECT 1 FROM shop s WHERE s.id = job.shop_id AND s.blocked_at IS NOT NULL)
RETURNING id

-- name: jobs_hold
-- dialect: pgsql
UPDATE job SET lane = 'blocked-' || lane
WHERE id = ANY (ARRAY(SELECT id FROM job WHERE shop_id = %lld AND id > %s:after AND status = 'queued'
        AND substr(lane, 1, 8) <> 'blocked-' ORDER BY id LIMIT %lld FOR UPDATE SKIP LOCKED))
    AND EXISTS (SELECT 1 FROM shop s WHERE s.id = job.shop_id AND s.blocked_at IS NOT NULL)
RETURNING id

-- name: jobs_resume
-- dialect: sqlite3
UPDATE job SET lane = substr(lane, 9)
WHERE id IN (SELECT id FROM job WHERE shop_id = %lld AND id > %s:after
    AND substr(lane, 1, 8) = 'blocked-' ORDER BY id LIMIT %lld)
RETURNING id

-- name: jobs_resume
-- dialect: pgsql
UPDATE job SET lane = substr(lane, 9)
WHERE id = ANY (ARRAY(SELECT id FROM job WHERE shop_id = %lld AND id > %s:after
    AND substr(lane, 1, 8) = 'blocked-' ORDER BY id LIMIT %lld))
RETURNING id

-- name: job_renew
UPDATE job SET interruptions = %lld, bytes_received = %lld, bytes_total = %lld?-1, written = %s,
    validator = %s, updated_at = {{later}}
WHERE id = %s AND lease_token = %lld AND status = 'running'

-- A job that its worker gives back unfinished has not used up an attempt.
-- name: job_release
UPDATE job SET status = 'queued', lane = %s, attempts = attempts - 1, due_at = %lld,
    lease_owner = NULL, interruptions = %lld, bytes_received = %lld, bytes_total = %lld?-1, written = %s,
    validator = %s, error_code = %s, error_message = %s, updated_at = {{later}}
WHERE id = %s AND lease_token = %lld AND status = 'running'
RETURNING attempts

-- name: job_retry_later
UPDATE job SET status = 'queued', interruptions = 0, due_at = %lld, lease_owner = NULL, bytes_received = %lld,
    bytes_total = %lld?-1, written = %s, validator = %s, error_code = %s, error_message = %s, updated_at = {{later}}
WHERE id = %s AND lease_token = %lld AND status = 'running'
RETURNING attempts

-- name: job_finish
UPDATE job SET status = %s, due_at = NULL, lease_owner = NULL, written = NULL, bytes_received = %lld,
    bytes_total = %lld?-1, error_code = %s, error_message = %s, finished_at = %lld:now, updated_at = {{later}},
    source_url = COALESCE(%s:source_url, source_url)
WHERE id = %s AND lease_token = %lld AND status = 'running'
RETURNING attempts

-- name: job_sources
SELECT id, source_url FROM job
WHERE id > %s:after AND type = 'asset_import' AND status <> 'succeeded' ORDER BY id LIMIT %lld

-- name: job_set_source
UPDATE job SET source_url = %s WHERE id = %s AND source_url = %s:old_source_url

-- The jobs that workers hold, including cancelled jobs that still need cleaning up. A worker renews a lease by
-- updated_at, its beat (mod_downloads/core/beat.h), which never goes back.
-- name: jobs_leased
SELECT id, updated_at FROM job WHERE lease_owner IS NOT NULL AND (due_at IS NULL OR status = 'cancelled')

-- A running job becomes due; a cancelled job may be cleaned up by any worker. A locked job waits for the next
-- time: it must not hold up the others.
-- part: job_expired
UPDATE job SET due_at = COALESCE(due_at, %lld:now), lease_owner = NULL

-- part: job_lost
id = %s AND updated_at = %lld AND lease_owner IS NOT NULL AND status IN ('running', 'cancelled')

-- name: job_expire
-- dialect: sqlite3
{{job_expired}}
WHERE {{job_lost}}

-- name: job_expire
-- dialect: pgsql
{{job_expired}}
WHERE id = ANY (ARRAY(SELECT id FROM job WHERE {{job_lost}} FOR UPDATE SKIP LOCKED))

-- Jobs that were written in the future, because the clock was set back: they now wait as long as was intended.
-- Jobs that were due long before they were written are left alone.
-- name: jobs_set_back
UPDATE job SET due_at = %lld:now + due_at - updated_at, updated_at = %lld:now
WHERE lane IN ('small', 'bulk', 'hash', 'mail', 'lookup', 'webhook', 'orders', 'news', 'cleanup', 'blocked-small',
        'blocked-bulk', 'blocked-hash', 'blocked-mail', 'blocked-lookup', 'blocked-webhook', 'blocked-orders',
        'blocked-news')
    AND due_at > %lld:now AND updated_at > %lld:now AND due_at + 1000000 > updated_at

-- Emails that failed before and wait for their next attempt are due now.  Those that wait for the shop's delay,
-- or for its rate, have used up no attempt.
-- name: jobs_flush
-- dialect: sqlite3
UPDATE job SET due_at = %lld:now, updated_at = {{later}}
WHERE id IN (SELECT id FROM job WHERE lane = 'mail' AND due_at > %lld:now AND status = 'queued' AND attempts > 0
    ORDER BY due_at LIMIT %lld)

-- name: jobs_flush
-- dialect: pgsql
UPDATE job SET due_at = %lld:now, updated_at = {{later}}
WHERE id = ANY (ARRAY(SELECT id FROM job WHERE lane = 'mail' AND due_at > %lld:now AND status = 'queued'
    AND attempts > 0 ORDER BY due_at LIMIT %lld FOR UPDATE SKIP LOCKED))

-- A job that its worker had begun when it died. With progress (1) the count of interruptions begins again with
-- this one; only bytes beyond the present number are the next progress.
-- name: job_interrupted
UPDATE job SET interruptions = 1 + CASE WHEN %lld:has_progress = 1 THEN 0 ELSE interruptions END,
    bytes_received = CASE WHEN bytes_received < %lld:received THEN %lld:received ELSE bytes_received END
WHERE id = %s AND lease_token = %lld AND status = 'running'

-- Jobs that a worker held when it died are due at once for its successor, which has the same name.
-- name: job_inherit
UPDATE job SET due_at = %lld:now, lease_owner = NULL WHERE lease_owner = %s AND status = 'running'

-- A job that succeeded earlier in this transaction, but whose result could not be kept.
-- name: job_fail
UPDATE job SET status = 'failed', error_code = %s, error_message = %s WHERE id = %s

-- name: job_retry
UPDATE job SET status = 'queued', lane = CASE WHEN lane <> 'cleanup' THEN lane
        WHEN type IN ('upload_verification', 'logo') THEN 'hash'
        WHEN type = 'storefront_lookup' THEN 'lookup' WHEN type = 'buyers_move' THEN 'orders' ELSE 'small' END,
    attempts = 0, interruptions = 0, written = NULL, validator = NULL, due_at = %lld:now, lease_owner = NULL,
    bytes_received = 0,
    bytes_total = NULL, error_code = NULL, error_message = NULL, started_at = NULL,
    finished_at = NULL, updated_at = {{later}}
WHERE id = %s AND (%lld:shop_id = 0 OR (shop_id = %lld AND {{type_shown}}))
    AND status IN ('failed', 'cancelled') AND {{of_version}}

-- A cancelled job waits in a lane of its own until its worker has stopped and left no file: due_at
-- is NULL from then on, and lease_owner says who that worker was.
-- name: job_cancel
UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = %lld:now, error_code = NULL,
    error_message = NULL, finished_at = %lld:now, updated_at = {{later}}
WHERE id = %s AND shop_id = %lld AND {{type_shown}} AND status IN ('queued', 'running')
    AND {{of_version}}

-- name: job_cancel_of_asset
UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = %lld:now, error_code = NULL,
    error_message = NULL, finished_at = %lld:now, updated_at = {{later}}
WHERE asset_id = %lld AND status IN ('queued', 'running')

-- A node's own jobs, and those that have no worker.
-- name: job_to_clean
SELECT {{job_columns}} FROM job
WHERE lane = 'cleanup' AND due_at IS NOT NULL AND (lease_owner IS NULL OR lease_owner = %s)
ORDER BY due_at LIMIT %lld

-- name: job_cleaned
UPDATE job SET due_at = NULL, lease_owner = NULL, written = NULL, validator = NULL
WHERE id = %s AND lease_token = %lld AND status = 'cancelled' AND due_at IS NOT NULL
