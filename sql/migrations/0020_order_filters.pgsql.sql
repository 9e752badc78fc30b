-- Orders in the order of time, whichever filter comes first.  The conditions, which hold for all, keep other
-- statements from these indexes.
DROP INDEX orders_shop;
CREATE INDEX orders_created ON orders (shop_id, created_at, id) WHERE created_at > 0;
CREATE INDEX orders_updated ON orders (shop_id, updated_at, id) WHERE updated_at > 0;
DROP INDEX orders_state;
CREATE INDEX orders_state ON orders (shop_id, access_status, created_at, id) WHERE access_status <> 'active';
DROP INDEX orders_customer;
CREATE INDEX orders_customer ON orders (customer_id, created_at, id);
CREATE INDEX assignment_product ON assignment (storefront_product_id, order_id);
