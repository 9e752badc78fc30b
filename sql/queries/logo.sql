-- name: logo_image_put
INSERT INTO logo_image (shop_id, job_id, image) VALUES (%lld:shop_id, %s:job_id, %s:image)
ON CONFLICT (shop_id) DO UPDATE SET job_id = excluded.job_id, image = excluded.image

-- name: logo_image_of_job
SELECT image FROM logo_image WHERE shop_id = %lld AND job_id = %s

-- Only the image's own job ends its wait.
-- name: logo_image_delete
DELETE FROM logo_image WHERE shop_id = %lld AND job_id = %s

-- name: logo_image_delete_any
DELETE FROM logo_image WHERE shop_id = %lld

-- name: logo_insert
INSERT INTO logo (shop_id, sha256, png, created_at) VALUES (%lld:shop_id, %s:sha256, %s:png, %lld:now)
ON CONFLICT (shop_id, sha256) DO UPDATE SET created_at = excluded.created_at

-- name: logo_prune
DELETE FROM logo WHERE shop_id = %lld AND sha256 NOT IN (
    SELECT l.sha256 FROM logo l WHERE l.shop_id = %lld ORDER BY l.created_at DESC LIMIT %lld)

-- name: logo_delete_all
DELETE FROM logo WHERE shop_id = %lld

-- name: shop_set_logo
UPDATE shop SET logo_sha256 = %s, logo_width = %lld?0, logo_height = %lld?0, logo_fault = NULL, updated_at = {{later}} WHERE id = %lld

-- name: shop_set_logo_fault
UPDATE shop SET logo_fault = %s, updated_at = {{later}} WHERE id = %lld

-- Shops may have the same logo.
-- name: logo_find
SELECT l.png FROM logo l JOIN shop s ON s.id = l.shop_id
WHERE l.sha256 = %s AND s.blocked_at IS NULL
LIMIT 1
