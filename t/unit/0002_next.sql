-- For t/unit/migrate.c: a migration after ours, which changes a table that has rows.
-- runs-with: 1
ALTER TABLE orders ADD COLUMN is_gift SMALLINT NOT NULL DEFAULT 0;
CREATE TABLE gift (
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}},
    note {{key_text}} PRIMARY KEY
);
INSERT INTO gift (order_id, note) SELECT id, 'for ' || storefront_order_id FROM orders;
UPDATE orders SET is_gift = 1 WHERE page_id = 'page';
DROP INDEX orders_refused;
