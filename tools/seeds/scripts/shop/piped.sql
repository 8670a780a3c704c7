\set id random(1, 1000000000000)
\set item random(1, 19)
\set customer random_zipfian(1, 100, 1.2)
\set sold 1
\startpipeline
SELECT price FROM shop_stock WHERE item = :item;
\syncpipeline
BEGIN;
UPDATE shop_stock SET pieces = pieces - 1 WHERE item = :item;
INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, 1);
COMMIT;
\endpipeline
