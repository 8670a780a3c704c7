-- The tables of pgbench with 1 branch, 10 tellers and 1,000 accounts, and a second branch for contention.
DROP TABLE IF EXISTS pgbench_history;
DROP TABLE IF EXISTS pgbench_accounts;
DROP TABLE IF EXISTS pgbench_tellers;
DROP TABLE IF EXISTS pgbench_branches;
CREATE TABLE pgbench_branches (bid INTEGER PRIMARY KEY, bbalance INTEGER NOT NULL, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, tbalance INTEGER NOT NULL, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, abalance INTEGER NOT NULL, filler CHAR(84));
CREATE TABLE pgbench_history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TIMESTAMP, filler CHAR(22));
INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, 0), (2, 0);
INSERT INTO pgbench_tellers (tid, bid, tbalance)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10)
SELECT n, 1 + n % 2, 0 FROM numbers;
INSERT INTO pgbench_accounts (aid, bid, abalance, filler)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
SELECT n, 1 + n % 2, 0, '' FROM numbers;
