\set id random(1, 1000000000000)
\set item random(1, 20)
\set more random(1, 5)
\set sold 0
BEGIN;
INSERT INTO shop_delivery (id, item, amount) VALUES (:id, :item, :more);
UPDATE shop_stock SET pieces = pieces + :more WHERE item = :item;
COMMIT;
