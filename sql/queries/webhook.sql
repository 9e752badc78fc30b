-- part: endpoint_columns
id, shop_id, job_id, url, description, types, is_active, failing_since, disabled_at, old_until,
created_at, updated_at

-- name: webhook_endpoint_insert
INSERT INTO webhook_endpoint (shop_id, job_id, url, description, types, secret, is_active, created_at,
    updated_at)
VALUES (%lld:shop_id, %s:job_id, %s:url, %s:description, %s:types, '', %lld:is_active, %lld:now, %lld:now)
RETURNING {{endpoint_columns}}

-- name: webhook_endpoint_count
SELECT count(*) FROM webhook_endpoint WHERE shop_id = %lld AND deleted_at IS NULL

-- name: webhook_endpoint_by_id
SELECT {{endpoint_columns}} FROM webhook_endpoint
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL

-- name: webhook_endpoint_lock
SELECT {{endpoint_columns}} FROM webhook_endpoint
WHERE id = %lld AND +shop_id = %lld AND +deleted_at IS NULL
{{for_no_key_update}}

-- name: webhook_endpoint_page
SELECT {{endpoint_columns}} FROM webhook_endpoint
WHERE shop_id = %lld AND id < %lld:before AND deleted_at IS NULL
ORDER BY id DESC LIMIT %lld

-- Endpoints of all shops that fail, or were switched off for it; each with its shop's name.
-- name: webhook_endpoints_failing
SELECT {{endpoint_columns}}, (SELECT s.name FROM shop s WHERE s.id = webhook_endpoint.shop_id) AS shop_name
FROM webhook_endpoint
WHERE deleted_at IS NULL AND (disabled_at IS NOT NULL OR (is_active = 1 AND failing_since IS NOT NULL))
ORDER BY id DESC LIMIT %lld

-- Switching an endpoint on resets its failures.
-- name: webhook_endpoint_change
UPDATE webhook_endpoint SET url = COALESCE(%s:url, url),
    description = CASE WHEN %lld:set_description = 1 THEN %s:description ELSE description END,
    types = CASE WHEN %lld:set_types = 1 THEN %s:types ELSE types END,
    failing_since = CASE WHEN %lld:activates = 1 AND is_active = 0 THEN NULL ELSE failing_since END,
    disabled_at = CASE WHEN %lld:activates = 1 AND is_active = 0 THEN NULL ELSE disabled_at END,
    is_active = COALESCE(%lld:is_active?-1, is_active), updated_at = {{later}}
WHERE id = %lld
RETURNING {{endpoint_columns}}

-- name: webhook_endpoint_set_secret
UPDATE webhook_endpoint SET old_secret = CASE WHEN secret <> '' THEN secret END, old_until = %lld?0,
    secret = %s, updated_at = CASE WHEN secret <> '' THEN {{later}} ELSE updated_at END
WHERE id = %lld
RETURNING {{endpoint_columns}}

-- name: webhook_endpoint_delete
UPDATE webhook_endpoint SET deleted_at = %lld, is_active = 0, secret = '', old_secret = NULL WHERE id = %lld

-- name: webhook_job_cancel
UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = %lld:now, finished_at = %lld:now,
    updated_at = {{later}}
WHERE id = %s AND status IN ('queued', 'running')

-- Makes deliveries of newly numbered events for the endpoints of their shops.
-- name: webhook_deliveries_insert
-- dialect: sqlite3
INSERT INTO webhook_delivery (endpoint_id, event_id, status, attempts, due_at, created_at, updated_at)
SELECT e.id, n.id, 'pending', 0, %lld:now, %lld:now, %lld:now
FROM event n CROSS JOIN webhook_endpoint e
WHERE n.id {{in_given}} AND e.shop_id = n.shop_id AND e.deleted_at IS NULL
    AND CASE WHEN n.endpoint_id IS NULL
        THEN e.is_active = 1 AND (e.types IS NULL
            OR (SELECT count(*) FROM json_each(e.types) WHERE value = n.type) > 0)
        ELSE n.endpoint_id = e.id END
ORDER BY n.id
RETURNING endpoint_id

-- name: webhook_deliveries_insert
-- dialect: pgsql
INSERT INTO webhook_delivery (endpoint_id, event_id, status, attempts, due_at, created_at, updated_at)
SELECT e.id, n.id, 'pending', 0, %lld:now, %lld:now, %lld:now
FROM (SELECT * FROM event WHERE id {{in_given}} OFFSET 0) n CROSS JOIN LATERAL (
    SELECT * FROM webhook_endpoint w WHERE w.shop_id = n.shop_id AND w.deleted_at IS NULL OFFSET 0
) e
WHERE CASE WHEN n.endpoint_id IS NULL
        THEN e.is_active = 1 AND (e.types IS NULL OR jsonb_exists(e.types::jsonb, n.type))
        ELSE n.endpoint_id = e.id END
ORDER BY n.id
RETURNING endpoint_id

-- Wakes the jobs of endpoints. A running job is locked, too: it looks again when it ends, for deliveries that
-- it does not see yet.
-- name: webhook_jobs_wake
UPDATE job SET due_at = CASE WHEN status = 'queued' AND COALESCE(due_at, %lld:due_at) >= %lld:due_at
    THEN %lld:due_at ELSE due_at END
WHERE id IN (SELECT e.job_id FROM webhook_endpoint e WHERE e.id {{in_given}})

-- The endpoint of a job, with its secrets.
-- name: webhook_endpoint_of_job
SELECT e.id, e.shop_id, e.url, e.is_active, e.secret, e.old_secret, e.old_until, e.failing_since
FROM webhook_endpoint e WHERE e.job_id = %s AND +e.deleted_at IS NULL

-- name: webhook_deliveries_due
SELECT d.id AS delivery_id, d.attempts, {{event_columns}} FROM webhook_delivery d JOIN event n ON n.id = d.event_id
WHERE d.endpoint_id = %lld AND d.due_at <= %lld:now
ORDER BY d.due_at LIMIT %lld

-- Unless the delivery has begun anew meanwhile.
-- name: webhook_delivery_result
UPDATE webhook_delivery SET status = %s, attempts = %lld, due_at = %lld?0, response_status = %lld?0,
    response_body = %s, error = %s, updated_at = {{later}}
WHERE id = %lld AND attempts = %lld:old_attempts

-- name: webhook_endpoint_result
UPDATE webhook_endpoint SET failing_since = CASE WHEN %lld:good = 1 THEN NULL ELSE COALESCE(failing_since,
    %lld:now) END
WHERE id = %lld AND (failing_since IS NULL) <> (%lld:good = 1)

-- An endpoint that has failed for long, and is not switched off yet.
-- name: webhook_endpoint_disable
UPDATE webhook_endpoint SET is_active = 0, disabled_at = %lld:now, updated_at = {{later}}
WHERE id = %lld AND is_active = 1 AND failing_since <= %lld:failing_since
RETURNING failing_since

-- When the job of an endpoint is to look again.
-- name: webhook_job_schedule
UPDATE job SET interruptions = 0, due_at = (
    SELECT d.due_at FROM webhook_delivery d
    WHERE d.endpoint_id = %lld AND d.due_at IS NOT NULL
        AND (SELECT e.is_active FROM webhook_endpoint e WHERE e.id = d.endpoint_id) = 1
    ORDER BY d.due_at LIMIT 1)
WHERE id = %s AND status = 'queued'
RETURNING due_at

-- part: delivery_columns
d.id, d.event_id, (SELECT n.type FROM event n WHERE n.id = d.event_id) AS type, d.status, d.attempts,
d.due_at, d.response_status, d.response_body, d.error, d.created_at, d.updated_at

-- name: webhook_delivery_page
SELECT {{delivery_columns}} FROM webhook_delivery d
WHERE d.endpoint_id = %lld AND d.id < %lld:before ORDER BY d.id DESC LIMIT %lld

-- name: webhook_delivery_by_id
SELECT {{delivery_columns}} FROM webhook_delivery d WHERE d.id = %lld AND +d.endpoint_id = %lld

-- A delivery that waits for its next attempt is due now.
-- name: webhook_delivery_resend
UPDATE webhook_delivery SET status = 'pending', attempts = 0, due_at = %lld:now, updated_at = {{later}}
WHERE id = %lld AND +endpoint_id = %lld

-- name: webhook_secrets
SELECT id, secret, old_secret FROM webhook_endpoint WHERE deleted_at IS NULL ORDER BY id

-- name: webhook_secrets_set
UPDATE webhook_endpoint SET secret = %s, old_secret = %s WHERE id = %lld

-- Deliveries that are due in the future only because the clock was set back.
-- name: webhook_deliveries_set_back
UPDATE webhook_delivery SET due_at = %lld:now + due_at - updated_at, updated_at = %lld:now
WHERE due_at > %lld:now AND updated_at > %lld:now AND due_at >= updated_at
