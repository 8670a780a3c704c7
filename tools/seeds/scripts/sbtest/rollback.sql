\set id random(1, 1000)
\set keep random(0, 3)
\if :keep > 0
  BEGIN;
  UPDATE sbtest1 SET k = k + 3 WHERE id = :id;
  SELECT k FROM sbtest1 WHERE id = :id;
  COMMIT;
\else
  BEGIN;
  SELECT k FROM sbtest1 WHERE id = :id;
  UPDATE sbtest1 SET k = -1, c = 'gone' WHERE id = :id;
  ROLLBACK;
\endif
