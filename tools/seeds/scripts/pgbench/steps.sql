-- Several transactions: two alone, a transfer in a block, and two in a pipeline.
\set aid random(1, 999)
\set other :aid + 1
\set tid random(1, 10)
\set delta random(1, 100)
UPDATE pgbench_tellers SET filler = 'busy' WHERE tid = :tid;
SELECT count(*) FROM pgbench_tellers;
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance - :delta WHERE aid = :aid;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :other;
COMMIT;
\startpipeline
UPDATE pgbench_tellers SET filler = 'free' WHERE tid = :tid;
\syncpipeline
UPDATE pgbench_branches SET filler = 'seen' WHERE bid = 2;
\endpipeline
