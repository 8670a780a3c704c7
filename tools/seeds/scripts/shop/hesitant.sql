-- A customer who finds few pieces, or thinks again, rolls the order back.
\set id random(1, 1000000000000)
\set item random(1, 20)
\set customer random(1, 100)
\set buys random(1, 5)
SELECT pieces, price FROM shop_stock WHERE item = :item \gset
\if :pieces < 10 or :buys = 1
  BEGIN;
  UPDATE shop_customer SET visits = visits + 1 WHERE id = :customer;
  INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, 1);
  ROLLBACK;
\else
  BEGIN;
  UPDATE shop_customer SET visits = visits + 1 WHERE id = :customer;
  INSERT INTO shop_order (id, customer, item, amount) VALUES (:id, :customer, :item, 1);
  UPDATE shop_stock SET pieces = pieces - 1 WHERE item = :item;
  COMMIT;
\endif
