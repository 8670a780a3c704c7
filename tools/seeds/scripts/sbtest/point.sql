\set id random(1, 1000)
\set id2 random_gaussian(1, 1000, 4)
SELECT c FROM sbtest1 WHERE id = :id;
SELECT c FROM sbtest1 WHERE id = :id2;
