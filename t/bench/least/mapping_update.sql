-- A mapping that exists; its file stays.
\set n :n + 1
\set id :client_id * 1000000000000 + :n
\set which random(1, 1000)
BEGIN;
INSERT INTO least_answer (shop_id, key_hi, key_lo, status, body, created_at)
VALUES (1, CAST(:id AS BIGINT), 0, 200, :body, 1);
UPDATE least_mapping SET updated_at = CAST(:id AS BIGINT)
WHERE shop_id = 1 AND product = 'gid://bench/Product/-' || CAST(:which AS BIGINT) AND variants = '';
COMMIT;
