-- Each statement is a transaction of its own, as in sysbench with --skip-trx.
\set id random(1, 1000)
\set id2 random(1, 1000)
\set part random(1, 1000000)
SELECT c FROM sbtest1 WHERE id = :id;
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
UPDATE sbtest1 SET c = :part WHERE id = :id2;
BEGIN;
UPDATE sbtest1 SET k = k - 1 WHERE id = :id2;
SELECT k FROM sbtest1 WHERE id = :id2 \gset
\if :k > 100
  UPDATE sbtest1 SET pad = 'large' WHERE id = :id2;
\endif
COMMIT;
