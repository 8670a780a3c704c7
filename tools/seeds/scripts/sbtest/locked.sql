-- It locks what it computes from.
\set id random_zipfian(1, 1000, 1.05)
\set bumps 1
BEGIN;
SELECT k FROM sbtest1 WHERE id = :id FOR UPDATE \gset
\set next :k + 1
UPDATE sbtest1 SET k = :next WHERE id = :id;
COMMIT;
