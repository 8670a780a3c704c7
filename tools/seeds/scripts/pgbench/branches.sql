-- The first three tellers roll a deposit back if they are above zero.
\set aid random(1, 1000)
\set bid random(1, 2)
\set tid random(1, 10)
\set delta random(1, 100)
SELECT tbalance FROM pgbench_tellers WHERE tid = :tid \gset
\if :tbalance > 0 and :tid < 4
  BEGIN;
  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
  ROLLBACK;
\else
  BEGIN;
  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
  UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
  UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
  INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
  COMMIT;
\endif
