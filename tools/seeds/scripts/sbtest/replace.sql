-- Two clients that replace the same row may collide on its key, and the second one is refused.
\set id random(1, 1000)
\set bumps 0
\set k random(1, 1000)
BEGIN;
DELETE FROM sbtest1 WHERE id = :id;
INSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, :k, 'again', 'pad');
COMMIT;
