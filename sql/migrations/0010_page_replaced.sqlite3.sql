-- When a shop replaced the address of the order's page; NULL: never.
ALTER TABLE orders ADD COLUMN page_replaced_at INTEGER;
