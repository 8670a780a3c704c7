-- An order of an unknown item or customer is refused by its foreign key, in the middle of the transaction.
\set id random(1, 1000000000000)
\set item random(1, 25)
\set customer random(1, 110)
\set sold 1
BEGIN;
UPDATE shop_stock SET pieces = pieces - 1 WHERE item = :item;
INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, 1);
UPDATE shop_customer SET visits = visits + 1 WHERE id = :customer;
COMMIT;
