\set low random(1, 950)
\set high :low + 49
BEGIN;
SELECT c FROM sbtest1 WHERE id BETWEEN :low AND :high;
SELECT sum(k) FROM sbtest1 WHERE id BETWEEN :low AND :high;
SELECT c FROM sbtest1 WHERE id BETWEEN :low AND :high ORDER BY c;
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :low AND :high ORDER BY c;
COMMIT;
