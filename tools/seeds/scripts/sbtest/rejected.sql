-- The row is inserted twice, so that the key refuses one transaction in three, with its update.
\set id random(1, 1000)
\set wrong random(1, 3)
\set bumps 2
BEGIN;
UPDATE sbtest1 SET k = k + 2 WHERE id = :id;
\if :wrong = 1
  INSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, 0, 'twice', 'pad');
\elif :wrong = 2
  UPDATE sbtest1 SET pad = 'seen' WHERE id = :id;
\endif
COMMIT;
