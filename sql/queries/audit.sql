-- name: audit_insert
INSERT INTO audit (shop_id, noun, noun_id, action, via, key_id, user_name, request_id, detail, created_at)
VALUES (%lld:shop_id?0, %s:noun, %s:noun_id, %s:action, %s:via, %s:key_id, %s:user_name, %s:request_id, %s:detail,
    %lld:now)

-- part: audit_columns
a.id, a.shop_id, (SELECT s.name FROM shop s WHERE s.id = a.shop_id) AS shop_name, a.noun, a.noun_id, a.action,
a.via, a.key_id, (SELECT k.name FROM api_key k WHERE k.id = a.key_id) AS key_name,
a.user_name, a.detail, a.created_at, a.request_id

-- name: audit_of_shop
SELECT {{audit_columns}} FROM audit a WHERE a.shop_id = %lld AND a.id < %lld:before ORDER BY a.id DESC
    LIMIT %lld

-- name: audit_of_all
SELECT {{audit_columns}} FROM audit a WHERE a.id < %lld:before ORDER BY a.id DESC LIMIT %lld

-- name: audit_of_request
SELECT {{audit_columns}} FROM audit a WHERE a.request_id = %s AND a.id < %lld:before ORDER BY a.id DESC LIMIT %lld
