\set id random(1, 1000)
\set id2 1 + (:id * 7) % 1000
\set part random(1, 1000000)
\set low random(1, 980)
\set high :low + 19
\set bumps 1
BEGIN;
SELECT c FROM sbtest1 WHERE id = :id;
SELECT c FROM sbtest1 WHERE id BETWEEN :low AND :high;
SELECT sum(k) FROM sbtest1 WHERE id BETWEEN :low AND :high;
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
UPDATE sbtest1 SET c = :part WHERE id = :id2;
COMMIT;
