-- For t/operate/upgrade*.t: a next release's migration, on which the release before runs.
-- runs-with: 1
CREATE TABLE later (
    id {{identity}},
    order_id BIGINT NOT NULL {{sqlite3: REFERENCES orders (id)}}
);
ALTER TABLE orders ADD COLUMN later SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN later TEXT;
CREATE INDEX orders_later ON orders (shop_id, later);
