\set low random(1, 15)
BEGIN;
SELECT item, pieces FROM shop_stock WHERE item >= :low ORDER BY item;
SELECT s.item, sum(o.amount) FROM shop_stock s LEFT JOIN shop_order o ON o.item = s.item WHERE s.item < :low GROUP BY s.item;
COMMIT;
SELECT id, visits FROM shop_customer WHERE id <= :low;
