\set id random(1, 1000)
\set bumps 0
\set part random(1, 1000000)
BEGIN;
UPDATE sbtest1 SET c = :part WHERE id = :id;
COMMIT;
