-- Products as staff see them: a mapping is a product, or some of its variants.

-- Part of the text of a product's gid: its number, as the index mapping_number has it.
-- part: product_number
-- dialect: sqlite3
substr(storefront_product_id, length(rtrim(storefront_product_id, '0123456789')) + 1)

-- part: product_number
-- dialect: pgsql
(substr(storefront_product_id, length(rtrim(storefront_product_id, '0123456789')) + 1) COLLATE "C")

-- part: folded_title
-- dialect: sqlite3
lower(title)

-- part: folded_title
-- dialect: pgsql
(lower(title) COLLATE "C")

-- part: product_row
id, storefront_product_id, title, is_active

-- What the mapping m_rows gives, and how many purchases of it there are, up to a limit of each kind.
-- part: product_columns
{{product_row}},
(SELECT count(*) FROM mapping_variant h WHERE h.mapping_id = m_rows.id) AS variants,
(SELECT count(*) FROM mapping_file h WHERE h.mapping_id = m_rows.id) AS files,
(SELECT count(*) FROM mapping_pack h WHERE h.mapping_id = m_rows.id) AS packs,
(SELECT count(*) FROM mapping_link h WHERE h.mapping_id = m_rows.id) AS links,
(SELECT count(*) FROM mapping_license_key_tag h WHERE h.mapping_id = m_rows.id) AS tags,
(SELECT count(*) FROM (SELECT 1 FROM assignment a WHERE a.mapping_id = m_rows.id AND a.content = 'live'
    LIMIT %lld:most) h_rows) AS live,
(SELECT count(*) FROM (SELECT 1 FROM assignment a WHERE a.mapping_id = m_rows.id AND a.content = 'pinned'
    LIMIT %lld:most) h_rows) AS pinned

-- name: product_page
SELECT {{product_columns}}
FROM (SELECT {{product_row}} FROM mapping
    WHERE shop_id = %lld AND deleted_at IS NULL AND id < %lld:before AND id > 0
    ORDER BY id DESC LIMIT %lld) m_rows
ORDER BY id DESC

-- name: product_page_of_state
SELECT {{product_columns}}
FROM (SELECT {{product_row}} FROM mapping
    WHERE shop_id = %lld AND is_active = %lld AND deleted_at IS NULL AND id < %lld:before AND shop_id > 0
    ORDER BY id DESC LIMIT %lld) m_rows
ORDER BY id DESC

-- By the beginning of their titles; of the first thousand those in a state, or in any (-1).
-- name: product_page_of_title
SELECT {{product_columns}}
FROM (SELECT {{product_row}} FROM (SELECT {{product_row}} FROM mapping
    WHERE shop_id = %lld AND {{folded_title}} >= lower(%s:prefix) AND {{folded_title}} < lower(%s:prefix_end)
        AND deleted_at IS NULL AND title > ''
    ORDER BY {{folded_title}}, id LIMIT 1000) f_rows
    WHERE %lld:is_active < 0 OR is_active = %lld:is_active
    ORDER BY {{folded_title}}, id LIMIT %lld) m_rows
ORDER BY {{folded_title}}, id

-- By the beginning of their numbers; likewise.
-- name: product_page_of_number
SELECT {{product_columns}}
FROM (SELECT {{product_row}} FROM (SELECT {{product_row}} FROM mapping
    WHERE shop_id = %lld AND {{product_number}} >= %s:prefix AND {{product_number}} < %s:prefix_end
        AND deleted_at IS NULL AND storefront_product_id > ''
    ORDER BY {{product_number}}, id LIMIT 1000) f_rows
    WHERE %lld:is_active < 0 OR is_active = %lld:is_active
    ORDER BY {{product_number}}, id LIMIT %lld) m_rows
ORDER BY {{product_number}}, id

-- With one of its orders.
-- name: product_by_id
SELECT {{product_columns}},
    (SELECT o.storefront_order_id FROM orders o
        WHERE o.id = (SELECT a.order_id FROM assignment a WHERE a.mapping_id = m_rows.id LIMIT 1))
        AS storefront_order_id
FROM mapping m_rows WHERE id = %lld

-- The names of what a mapping gives, each kind in its order; kinds are those of mapping_lists.
-- name: product_contents
SELECT 1 AS content, h.asset_id AS id, (SELECT s.title FROM asset s WHERE s.id = h.asset_id) AS name,
    (SELECT s.filename FROM asset s WHERE s.id = h.asset_id) AS detail, h.position
FROM mapping_file h WHERE h.mapping_id = %lld:mapping_id
UNION ALL
SELECT 2, h.pack_id, (SELECT k.name FROM pack k WHERE k.id = h.pack_id), NULL, h.position
FROM mapping_pack h WHERE h.mapping_id = %lld:mapping_id
UNION ALL
SELECT 3, h.link_id, (SELECT l.title FROM link l WHERE l.id = h.link_id),
    (SELECT l.url FROM link l WHERE l.id = h.link_id), h.position
FROM mapping_link h WHERE h.mapping_id = %lld:mapping_id
UNION ALL
SELECT 4, h.tag_id, (SELECT t.name FROM license_key_tag t WHERE t.id = h.tag_id), NULL, h.position
FROM mapping_license_key_tag h WHERE h.mapping_id = %lld:mapping_id
ORDER BY 1, 5

-- part: has_text
-- dialect: sqlite3
instr(lower({{}}), lower(%s:text)) > 0

-- part: has_text
-- dialect: pgsql
strpos(lower({{}}), lower(%s:text)) > 0

-- What a shop could give and whose name has a text: of the newest thousand of each kind, up to ten.
-- name: product_matches
SELECT content, id, name, detail FROM (
    SELECT 1 AS content, id, title AS name, filename AS detail FROM (
        SELECT id, title, filename FROM asset WHERE shop_id = %lld AND deleted_at IS NULL AND id > 0
        ORDER BY id DESC LIMIT 1000) s_rows
    WHERE {{has_text:title}} OR {{has_text:filename}} ORDER BY id DESC LIMIT 10) a_rows
UNION ALL
SELECT content, id, name, detail FROM (
    SELECT 2 AS content, id, name, NULL AS detail FROM (
        SELECT id, name FROM pack WHERE shop_id = %lld ORDER BY id DESC LIMIT 1000) k_rows
    WHERE {{has_text:name}} ORDER BY id DESC LIMIT 10) p_rows
UNION ALL
SELECT content, id, name, detail FROM (
    SELECT 3 AS content, id, title AS name, url AS detail FROM (
        SELECT id, title, url FROM link WHERE shop_id = %lld ORDER BY id DESC LIMIT 1000) l_rows
    WHERE {{has_text:title}} ORDER BY id DESC LIMIT 10) l_rows
UNION ALL
SELECT content, id, name, detail FROM (
    SELECT 4 AS content, id, name, NULL AS detail FROM (
        SELECT id, name FROM license_key_tag WHERE shop_id = %lld AND deleted_at IS NULL
        ORDER BY id DESC LIMIT 1000) t_rows
    WHERE {{has_text:name}} ORDER BY id DESC LIMIT 10) g_rows
ORDER BY 1, 2 DESC
