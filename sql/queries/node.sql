-- A node is one httpd, identified by its host and pid file. Clocks of two hosts are never compared: beats use
-- the database's clock.

-- name: node_beat
INSERT INTO node (host, pid_file, pid, build, connections, beat_at)
VALUES (%s:host, %s:pid_file, %lld:pid, %s:build, %lld:connections, {{now}})
ON CONFLICT (host, pid_file) DO UPDATE SET pid = excluded.pid, build = excluded.build,
    connections = excluded.connections, beat_at = excluded.beat_at

-- name: nodes_live
SELECT count(*) FROM node WHERE beat_at > {{now}} - %lld:lost

-- name: nodes_forget
DELETE FROM node WHERE beat_at < {{now}} - %lld:kept

-- name: nodes
SELECT host, pid_file, pid, build, connections, {{now}} - beat_at AS silence FROM node ORDER BY host, pid_file LIMIT 1000

-- name: node_remove
DELETE FROM node WHERE host = %s AND pid_file = %s

-- name: node_time
SELECT {{now}}
