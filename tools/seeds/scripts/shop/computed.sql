-- It computes from what it read, so it needs an isolation that forbids lost updates.
\set id random(1, 1000000000000)
\set item random(1, 19)
\set customer random(1, 100)
\set sold random(1, 3)
BEGIN;
SELECT pieces FROM shop_stock WHERE item = :item \gset
\set rest :pieces - :sold
UPDATE shop_stock SET pieces = :rest WHERE item = :item;
INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, :sold);
COMMIT;
