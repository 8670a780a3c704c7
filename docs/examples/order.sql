\set item random(1, 3)
\set sold 1
\set customer random_zipfian(1, 100000, 1.2)
BEGIN;
UPDATE stock SET pieces = pieces - 1 WHERE item = :item;
INSERT INTO orders (item, customer) VALUES (:item, :customer);
COMMIT;
