-- A whole download: what is left is looked at and taken, and the download written down.
\set n :n + 1
\set id :client_id * 1000000000000 + :n
\set which random(1, 1000)
BEGIN;
SELECT f.asset_id, m.kind, a.used FROM least_mapping m
JOIN least_mapping_file f ON f.mapping_id = m.id
JOIN least_allowance a ON a.assignment_id = -m.id AND a.asset_id = f.asset_id
WHERE m.id = -CAST(:which AS BIGINT);
UPDATE least_allowance SET used = used + 1
WHERE assignment_id = CAST(:which AS BIGINT) AND asset_id = CAST(:which AS BIGINT) AND used < 1000000;
INSERT INTO least_session (id, assignment_id, asset_id, status, bytes)
VALUES (CAST(:id AS BIGINT), CAST(:which AS BIGINT), CAST(:which AS BIGINT), 'counted', 10000);
COMMIT;
