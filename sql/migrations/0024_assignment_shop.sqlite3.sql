-- A product's orders are those of one shop: another shop may have sold a product of the same id.
ALTER TABLE assignment ADD COLUMN shop_id INTEGER NOT NULL DEFAULT 0;
UPDATE assignment SET shop_id = (SELECT o.shop_id FROM orders o WHERE o.id = assignment.order_id);
DROP INDEX assignment_product;
CREATE INDEX assignment_product ON assignment (shop_id, storefront_product_id, order_id) WHERE shop_id > 0;
