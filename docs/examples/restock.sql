\set item random(1, 3)
\set more random(1, 10)
BEGIN;
SELECT pieces FROM stock WHERE item = :item \gset
\set sum :pieces + :more
UPDATE stock SET pieces = :sum WHERE item = :item;
COMMIT;
