-- Fragments that every file of queries may name, most of them for what SQLite and PostgreSQL write
-- differently.
--
-- In all queries "+column" keeps both databases from choosing an index by that column.  It stands for
-- what else must hold for rows that a key finds.

-- Row locks, at the end of a statement.  SQLite has one writer at a time and needs none.
-- part: for_update
-- dialect: sqlite3

-- part: for_update
-- dialect: pgsql
FOR UPDATE

-- part: for_no_key_update
-- dialect: sqlite3

-- part: for_no_key_update
-- dialect: pgsql
FOR NO KEY UPDATE

-- part: for_share
-- dialect: sqlite3

-- part: for_share
-- dialect: pgsql
FOR SHARE

-- part: for_key_share
-- dialect: sqlite3

-- part: for_key_share
-- dialect: pgsql
FOR KEY SHARE

-- "WHERE id {{in_given}}": the parameter is a list of ids, called ids or as {{in_given:…}} says.  PostgreSQL can't know how few they are; it
-- takes an array for 10, the elements of a JSON document for 100.
-- part: in_given
-- dialect: sqlite3
IN (SELECT value FROM json_each(%ids:{{}}))

-- part: in_given
-- dialect: pgsql
= ANY (%ids:{{}})

-- The time by the database's clock, which all nodes have in common.  PostgreSQL compares an index with it.
-- part: now
-- dialect: sqlite3
(CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)

-- part: now
-- dialect: pgsql
CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)

-- The same at the beginning of a statement, for joins.
-- part: given_rows
-- dialect: sqlite3
WITH given_rows (id) AS (SELECT value FROM json_each(%ids))

-- part: given_rows
-- dialect: pgsql
WITH given_rows (id) AS (SELECT unnest(%ids))

-- What a change makes of updated_at: the time now, and always a millisecond more than it was, so that no
-- two versions show the same time.
-- part: later
-- dialect: sqlite3
max(updated_at + 1000, %lld:now)

-- part: later
-- dialect: pgsql
greatest(updated_at + 1000, %lld:now)

-- Whether a row has one of the versions that its caller knows (mod_downloads/core/version.h).
-- part: of_version
(%lld:versioned = 0 OR updated_at / 1000 {{in_given:versions}})

-- For uploads.  With a constant the planner would choose the index of all open uploads.
-- part: is_open
status = (SELECT 'open')

-- What counts against the quota of the shop s: its assets, and its open uploads but one.
-- part: bytes_taken
s.bytes_stored + CAST(COALESCE((SELECT sum(COALESCE(u.size, u.reserved)) FROM upload u
    WHERE u.shop_id = s.id AND u.status = 'open' AND u.id <> %s:upload_id AND u.expires_at > {{now}}),
        0) AS BIGINT)

-- Rows to insert: an id, and the ids of a list with their places in it.
-- part: given_list
-- dialect: sqlite3
SELECT %lld:id, value, key FROM json_each(%ids)

-- part: given_list
-- dialect: pgsql
SELECT %lld:id, value, ordinality
FROM unnest(%ids) WITH ORDINALITY given (value, ordinality)

-- Orders that still follow a deleted mapping, of those that h has.
-- part: following_orders
-- dialect: sqlite3
JOIN mapping m ON m.id = h.mapping_id
CROSS JOIN assignment a ON a.mapping_id = m.id AND a.content = 'live'
JOIN orders o ON o.id = a.order_id
WHERE m.deleted_at IS NOT NULL

-- part: following_orders
-- dialect: pgsql
JOIN mapping m ON m.id = h.mapping_id
CROSS JOIN LATERAL (
    SELECT order_id FROM assignment WHERE mapping_id = m.id AND content = 'live' OFFSET 0
) a
JOIN orders o ON o.id = a.order_id
WHERE m.deleted_at IS NOT NULL

-- The jobs that a shop sees: what is sent to somebody has lists of its own.
-- part: type_shown
type <> 'email' AND type <> 'webhook' AND type <> 'staff_email'

-- The state of an email, as mod_downloads/core/order/email.c reads it.
-- part: email_columns
e.status, e.recipient, e.attempts, e.last_error, e.sent_at, e.held, e.bounced_at

-- In place of a column's new value: fails the statement, and with it the transaction.  PostgreSQL refuses the
-- division, without a line in its log that has the row, and for SQLite it is NULL, which the column must not be.
-- part: failure
{{}} / 0

-- A notice, as mod_downloads/core/shop/notice.c reads it.
-- part: notice_columns
n.id, n.number, n.type, n.data, n.created_at,
(SELECT o.storefront_order_id FROM orders o WHERE o.id = n.order_id) AS storefront_order_id
