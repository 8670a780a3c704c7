-- One insert in four has the key of a branch that exists, and the primary key refuses the whole transaction.
\set aid random(1, 1000)
\set tid random(1, 10)
\set delta random(1, 100)
\set wrong random(1, 4)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
\if :wrong = 1
  INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, :delta);
\endif
COMMIT;
