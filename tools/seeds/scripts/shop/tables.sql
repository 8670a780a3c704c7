-- An order of a customer takes pieces from the stock. Item 20 has few pieces, and its CHECK refuses some orders.
DROP TABLE IF EXISTS shop_delivery;
DROP TABLE IF EXISTS shop_order;
DROP TABLE IF EXISTS shop_stock;
DROP TABLE IF EXISTS shop_customer;
CREATE TABLE shop_customer (id INTEGER PRIMARY KEY, visits INTEGER NOT NULL, note VARCHAR(40));
CREATE TABLE shop_stock (
    item INTEGER PRIMARY KEY,
    pieces INTEGER NOT NULL,
    first_pieces INTEGER NOT NULL,
    price DECIMAL(10, 2) NOT NULL,
    CHECK (pieces >= 0)
);
CREATE TABLE shop_order (
    id BIGINT PRIMARY KEY,
    customer INTEGER NOT NULL,
    item INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    FOREIGN KEY (customer) REFERENCES shop_customer (id),
    FOREIGN KEY (item) REFERENCES shop_stock (item)
);
CREATE TABLE shop_delivery (
    id BIGINT PRIMARY KEY,
    item INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    FOREIGN KEY (item) REFERENCES shop_stock (item)
);
INSERT INTO shop_customer (id, visits)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100)
SELECT n, 0 FROM numbers;
INSERT INTO shop_stock (item, pieces, first_pieces, price)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20)
SELECT n, CASE WHEN n = 20 THEN 30 ELSE 100000 END, CASE WHEN n = 20 THEN 30 ELSE 100000 END, 2.25 FROM numbers;
