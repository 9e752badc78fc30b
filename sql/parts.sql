-- Fragments that every file of queries may name, most of them for what SQLite and PostgreSQL write
-- differently.

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

-- part: for_key_share
-- dialect: sqlite3

-- part: for_key_share
-- dialect: pgsql
FOR KEY SHARE

-- "WHERE id {{in_given}}": the parameter is a list of ids.  PostgreSQL can't know how few they are; it
-- takes an array for 10, the elements of a JSON document for 100.
-- part: in_given
-- dialect: sqlite3
IN (SELECT value FROM json_each(%ids))

-- part: in_given
-- dialect: pgsql
= ANY (%ids)

-- The same at the beginning of a statement, for joins.
-- part: given_rows
-- dialect: sqlite3
WITH given_rows (id) AS (SELECT value FROM json_each(%ids))

-- part: given_rows
-- dialect: pgsql
WITH given_rows (id) AS (SELECT unnest(%ids))

-- For uploads.  With a constant the planner would choose the index of all open uploads.
-- part: is_open
status = (SELECT 'open')

-- Rows to insert: an id, and the ids of a list with their places in it.
-- part: given_list
-- dialect: sqlite3
SELECT %lld, value, key FROM json_each(%ids)

-- part: given_list
-- dialect: pgsql
SELECT %lld, value, ordinality
FROM unnest(%ids) WITH ORDINALITY given (value, ordinality)
