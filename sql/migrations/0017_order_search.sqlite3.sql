-- Who of a shop's staff did it, in the settings; NULL: nobody.
ALTER TABLE order_event ADD COLUMN user_name TEXT;

-- To find the orders of a state that few have.
CREATE INDEX orders_state ON orders (shop_id, access_status, id) WHERE access_status <> 'active';
