-- part: category_columns
id, name, created_at, updated_at

-- name: category_insert
INSERT INTO category (shop_id, name, created_at, updated_at) VALUES (%lld:shop_id, %s:name, %lld:now, %lld:now)
RETURNING {{category_columns}}

-- name: category_by_id
SELECT {{category_columns}} FROM category WHERE id = %lld AND +shop_id = %lld

-- The same; the category can't be deleted until the transaction ends.
-- name: category_hold
SELECT id FROM category WHERE id = %lld AND +shop_id = %lld {{for_key_share}}

-- name: category_page
SELECT {{category_columns}} FROM category WHERE shop_id = %lld AND id < %lld:before
ORDER BY id DESC LIMIT %lld

-- name: category_change
UPDATE category SET name = %s, updated_at = {{later}}
WHERE id = %lld AND +shop_id = %lld AND {{of_version}}
RETURNING {{category_columns}}

-- Before a category is emptied: waits for transactions that are putting an asset into it.
-- name: category_lock
SELECT {{category_columns}} FROM category WHERE id = %lld AND +shop_id = %lld {{for_update}}

-- name: category_leave_assets
UPDATE asset SET category_id = NULL, updated_at = {{later}} WHERE category_id = %lld

-- name: category_leave_uploads
UPDATE upload SET category_id = NULL, updated_at = {{later}} WHERE category_id = %lld

-- name: category_delete
DELETE FROM category WHERE id = %lld
