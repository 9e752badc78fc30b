-- The jobs between two ids, which begin with their time.
-- name: trace_jobs
SELECT id, type, status, shop_id, asset_id, order_id, email_id, attempts, error_code, error_message, created_at,
    started_at, finished_at
FROM (SELECT * FROM job WHERE id >= %s:from AND id < %s:to ORDER BY id LIMIT %lld) j_rows
WHERE request_id = %s
ORDER BY id

-- name: trace_email_ids
SELECT e.id FROM email e
WHERE e.order_id = (SELECT o.id FROM orders o WHERE o.shop_id = %lld AND o.storefront_order_id = %s)
    AND e.request_id = %s
ORDER BY e.id LIMIT %lld

-- name: trace_emails
SELECT id, shop_id, (SELECT o.storefront_order_id FROM orders o WHERE o.id = email.order_id) AS storefront_order_id,
    recipient, {{email_fate}} AS fate, attempts, last_error, response, created_at, sent_at
FROM email WHERE id {{in_given}} ORDER BY id

-- name: trace_downloads
SELECT a.shop_id, (SELECT o.storefront_order_id FROM orders o WHERE o.id = a.order_id) AS storefront_order_id,
    s_rows.assignment_id, s_rows.asset_id, s_rows.status, s_rows.bytes, s_rows.size, s_rows.opened_at, s_rows.ended_at
FROM (SELECT * FROM download_session WHERE opened_at >= %lld:since AND opened_at < %lld:until
    ORDER BY opened_at LIMIT %lld) s_rows
CROSS JOIN assignment a
WHERE s_rows.request_id = %s AND a.id = s_rows.assignment_id
ORDER BY s_rows.opened_at

-- The next event, and the next delivery: ids are in the order of time, almost.
-- name: trace_event_from
SELECT id, created_at FROM event WHERE id >= %lld:from ORDER BY id LIMIT 1

-- name: trace_delivery_from
SELECT id, created_at FROM webhook_delivery WHERE id >= %lld:from ORDER BY id LIMIT 1

-- name: trace_events
SELECT id, type, number, created_at
FROM (SELECT * FROM event WHERE id >= %lld:from ORDER BY id LIMIT %lld) n_rows
WHERE request_id = %s ORDER BY id

-- name: trace_deliveries
SELECT id, endpoint_id, event_id, status, attempts, response_status, error, updated_at
FROM (SELECT * FROM webhook_delivery WHERE id >= %lld:from ORDER BY id LIMIT %lld) d_rows
WHERE event_id {{in_given}} ORDER BY id
