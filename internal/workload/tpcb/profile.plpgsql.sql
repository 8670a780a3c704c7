{{- /* The statements are those of the transaction; the procedure returns the account's balance after it. */ -}}
CREATE OR REPLACE FUNCTION PROCEDURE_NAME(
	the_aid {{.IntegerType}}, the_tid {{.IntegerType}}, the_bid {{.IntegerType}}, the_delta {{.IntegerType}}, the_filler TEXT)
RETURNS {{.IntegerType}} LANGUAGE plpgsql AS $body$
DECLARE
	made {{.IntegerType}};
BEGIN
	UPDATE pgbench_accounts SET abalance = abalance + the_delta WHERE aid = the_aid;
	SELECT abalance INTO made FROM pgbench_accounts WHERE aid = the_aid;
	IF NOT FOUND THEN
		RAISE foreign_key_violation USING MESSAGE = 'there is no such account';
	END IF;
	UPDATE pgbench_tellers SET tbalance = tbalance + the_delta WHERE tid = the_tid;
	IF NOT FOUND THEN
		RAISE foreign_key_violation USING MESSAGE = 'there is no such teller';
	END IF;
	UPDATE pgbench_branches SET bbalance = bbalance + the_delta WHERE bid = the_bid;
	IF NOT FOUND THEN
		RAISE foreign_key_violation USING MESSAGE = 'there is no such branch';
	END IF;
{{- if eq .Variant "history"}}
	INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler)
		VALUES (the_tid, the_bid, the_aid, the_delta, CURRENT_TIMESTAMP, the_filler);
{{- end}}
	RETURN made;
END
$body$
