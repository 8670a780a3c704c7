\set id random_zipfian(1, 1000, 1.05)
\set bumps 1
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
