-- A new mapping with one file, and the answer that a repetition of the request gets.
\set n :n + 1
\set id :client_id * 1000000000000 + :n
BEGIN;
INSERT INTO least_answer (shop_id, key_hi, key_lo, status, body, created_at)
VALUES (1, CAST(:id AS BIGINT), 0, 201, :body, 1);
INSERT INTO least_mapping (id, shop_id, product, variants, kind, updated_at)
VALUES (CAST(:id AS BIGINT), 1, 'gid://bench/Product/' || CAST(:id AS BIGINT), '', 'FILES', 1);
INSERT INTO least_mapping_file (mapping_id, asset_id, position)
VALUES (CAST(:id AS BIGINT), 1, 0);
COMMIT;
