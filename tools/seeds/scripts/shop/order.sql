\set id random(1, 1000000000000)
\set item random(1, 20)
\set customer random(1, 100)
\set sold random(1, 3)
BEGIN;
UPDATE shop_stock SET pieces = pieces - :sold WHERE item = :item;
INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, :sold);
COMMIT;
