-- A new order of a new customer, with one item.
\set n :n + 1
\set id :client_id * 1000000000000 + :n
\set which random(1, 1000)
BEGIN;
INSERT INTO least_answer (shop_id, key_hi, key_lo, status, body, created_at)
VALUES (1, CAST(:id AS BIGINT), 0, 201, :body, 1);
INSERT INTO least_customer (id, shop_id, storefront_id)
VALUES (CAST(:id AS BIGINT), 1, '' || CAST(:id AS BIGINT));
INSERT INTO least_order (id, shop_id, storefront_id, customer_id, page, status, created_at)
VALUES (CAST(:id AS BIGINT), 1, '' || CAST(:id AS BIGINT), CAST(:id AS BIGINT), 'page-' || CAST(:id AS BIGINT), 'active', 1);
INSERT INTO least_assignment (id, order_id, product, mapping_id, status)
SELECT CAST(:id AS BIGINT), CAST(:id AS BIGINT), product, id, 'active' FROM least_mapping
WHERE shop_id = 1 AND product = 'gid://bench/Product/-' || CAST(:which AS BIGINT) AND variants = '';
INSERT INTO least_event (id, order_id, action, created_at)
VALUES (CAST(:id AS BIGINT), CAST(:id AS BIGINT), 'assigned', 1);
COMMIT;
