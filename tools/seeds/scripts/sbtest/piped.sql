\set id random(1, 1000)
\set bumps 1
\startpipeline
SELECT c FROM sbtest1 WHERE id = :id;
\syncpipeline
BEGIN;
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
SELECT k FROM sbtest1 WHERE id = :id;
COMMIT;
\endpipeline
