-- Several transactions: a visit alone, an order in a block, a note alone, and a report.
\set id random(1, 1000000000000)
\set item random(1, 20)
\set customer random(1, 100)
UPDATE shop_customer SET visits = visits + 1 WHERE id = :customer;
BEGIN;
INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, 1);
UPDATE shop_stock SET pieces = pieces - 1 WHERE item = :item;
COMMIT;
UPDATE shop_customer SET note = 'served' WHERE id = :customer;
SELECT count(*), sum(amount) FROM shop_order;
