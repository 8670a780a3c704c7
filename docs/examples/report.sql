SELECT item, pieces FROM stock ORDER BY item;
