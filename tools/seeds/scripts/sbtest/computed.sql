-- It computes from what it read, so it needs an isolation that forbids lost updates.
\set id random_zipfian(1, 1000, 1.05)
\set bumps 1
BEGIN;
SELECT k FROM sbtest1 WHERE id = :id \gset
\set next :k + 1
UPDATE sbtest1 SET k = :next WHERE id = :id;
COMMIT;
