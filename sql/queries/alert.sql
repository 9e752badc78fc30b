-- A finding is what a test of core/health has found wrong at a node; an alert tells of it. Where any node may find
-- the same, the alert is of the whole service, and has '' for host and pid_file.

-- name: alert_finding_add
INSERT INTO alert_finding (name, host, pid_file, of_node, words, seen_at)
VALUES (%s:name, %s:host, %s:pid_file, %lld:of_node, %s:words, {{now}})
ON CONFLICT (name, host, pid_file) DO UPDATE SET seen_at = excluded.seen_at

-- name: alert_finding_remove
DELETE FROM alert_finding WHERE name = %s:name AND host = %s:host AND pid_file = %s:pid_file

-- A node that has just started does not know yet what it will find.
-- name: alert_findings_seen
UPDATE alert_finding SET seen_at = {{now}} WHERE host = %s:host AND pid_file = %s:pid_file

-- name: alert_findings_forget
DELETE FROM alert_finding WHERE seen_at < {{now}} - %lld:kept

-- name: alerts_raise
INSERT INTO alert (name, host, pid_file, failing, words, teller_host, teller_pid_file)
SELECT name, CASE of_node WHEN 1 THEN host ELSE '' END, CASE of_node WHEN 1 THEN pid_file ELSE '' END, 1, words,
    host, pid_file
FROM alert_finding WHERE host = %s:host AND pid_file = %s:pid_file
ON CONFLICT (name, host, pid_file) DO UPDATE SET failing = 1, words = excluded.words, rounds = 0,
    teller_host = excluded.teller_host, teller_pid_file = excluded.teller_pid_file
WHERE alert.failing = 0

-- name: alerts_settle
UPDATE alert SET failing = 0, rounds = 0, teller_host = %s:host, teller_pid_file = %s:pid_file
WHERE failing = 1 AND (host = '' OR (host = %s:host AND pid_file = %s:pid_file))
    AND NOT EXISTS (SELECT 1 FROM alert_finding f WHERE f.name = alert.name
        AND (alert.host = '' OR (f.host = alert.host AND f.pid_file = alert.pid_file))
        AND f.seen_at > {{now}} - %lld:silent)

-- The second kind is of a node that is gone for good.
-- name: alerts_forget
DELETE FROM alert WHERE (failing = 0 AND command_told = 0 AND email_told = 0)
    OR (failing = 1 AND host <> '' AND NOT EXISTS (SELECT 1 FROM alert_finding f
        WHERE f.name = alert.name AND f.host = alert.host AND f.pid_file = alert.pid_file))

-- Those of this node, and of nodes that are not there to tell.
-- name: alerts_take
UPDATE alert SET rounds = rounds + 1, teller_host = %s:host, teller_pid_file = %s:pid_file
WHERE (command_told <> failing OR email_told <> failing)
    AND ((teller_host = %s:host AND teller_pid_file = %s:pid_file) OR NOT EXISTS (SELECT 1 FROM node
        WHERE node.host = teller_host AND node.pid_file = teller_pid_file AND node.beat_at > {{now}} - %lld:lost))
RETURNING name, host, pid_file, failing, words, rounds, command_told, email_told

-- name: alert_told
UPDATE alert SET command_told = %lld:command_told, email_told = %lld:email_told
WHERE name = %s:name AND host = %s:host AND pid_file = %s:pid_file
