-- It computes from what it read, so it needs an isolation that forbids lost updates.
\set aid random_zipfian(1, 1000, 1.1)
\set tid random(1, 10)
\set bid random(1, 2)
\set delta random(-5000, 5000)
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid \gset
\set sum :abalance + :delta
UPDATE pgbench_accounts SET abalance = :sum WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
