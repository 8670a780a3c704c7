{{- /* The statements are those of the transaction; the procedure returns the account's balance after it. */ -}}
CREATE PROCEDURE PROCEDURE_NAME(
	IN the_aid {{.IntegerType}}, IN the_tid {{.IntegerType}}, IN the_bid {{.IntegerType}}, IN the_delta {{.IntegerType}}, IN the_filler TEXT)
MODIFIES SQL DATA
BEGIN
	UPDATE pgbench_accounts SET abalance = abalance + the_delta WHERE aid = the_aid;
	IF ROW_COUNT() = 0 AND the_delta <> 0 THEN
		SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1452, MESSAGE_TEXT = 'there is no such account';
	END IF;
	SELECT abalance FROM pgbench_accounts WHERE aid = the_aid;
	UPDATE pgbench_tellers SET tbalance = tbalance + the_delta WHERE tid = the_tid;
	IF ROW_COUNT() = 0 AND the_delta <> 0 THEN
		SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1452, MESSAGE_TEXT = 'there is no such teller';
	END IF;
	UPDATE pgbench_branches SET bbalance = bbalance + the_delta WHERE bid = the_bid;
	IF ROW_COUNT() = 0 AND the_delta <> 0 THEN
		SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1452, MESSAGE_TEXT = 'there is no such branch';
	END IF;
{{- if eq .Variant "history"}}
	INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler)
		VALUES (the_tid, the_bid, the_aid, the_delta, CURRENT_TIMESTAMP, the_filler);
{{- end}}
END
