-- The table of sysbench's OLTP with 1,000 rows.
DROP TABLE IF EXISTS sbtest1;
CREATE TABLE sbtest1 (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL);
CREATE INDEX k_1 ON sbtest1 (k);
INSERT INTO sbtest1 (id, k, c, pad)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
SELECT n, n * 7 % 1000, 'first', 'pad' FROM numbers;
