package tpcb

import (
	"strings"

	"stroppy/internal/db"
)

// The statements of the procedure are those of the transaction; it returns the
// account's balance after it.
const (
	procedurePLpgSQL = `CREATE OR REPLACE FUNCTION PROCEDURE_NAME(
	the_aid INTEGER_TYPE, the_tid INTEGER_TYPE, the_bid INTEGER_TYPE, the_delta INTEGER_TYPE, the_filler TEXT)
RETURNS INTEGER_TYPE LANGUAGE plpgsql AS $body$
DECLARE
	made INTEGER_TYPE;
BEGIN
	UPDATE pgbench_accounts SET abalance = abalance + the_delta WHERE aid = the_aid;
	SELECT abalance INTO made FROM pgbench_accounts WHERE aid = the_aid;
	UPDATE pgbench_tellers SET tbalance = tbalance + the_delta WHERE tid = the_tid;
	UPDATE pgbench_branches SET bbalance = bbalance + the_delta WHERE bid = the_bid;
	HISTORY
	RETURN made;
END
$body$`

	procedurePSM = `CREATE PROCEDURE IF NOT EXISTS PROCEDURE_NAME(
	IN the_aid INTEGER_TYPE, IN the_tid INTEGER_TYPE, IN the_bid INTEGER_TYPE, IN the_delta INTEGER_TYPE, IN the_filler TEXT)
MODIFIES SQL DATA
BEGIN
	UPDATE pgbench_accounts SET abalance = abalance + the_delta WHERE aid = the_aid;
	SELECT abalance FROM pgbench_accounts WHERE aid = the_aid;
	UPDATE pgbench_tellers SET tbalance = tbalance + the_delta WHERE tid = the_tid;
	UPDATE pgbench_branches SET bbalance = bbalance + the_delta WHERE bid = the_bid;
	HISTORY
END`

	procedureHistory = `INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler)
		VALUES (the_tid, the_bid, the_aid, the_delta, CURRENT_TIMESTAMP, the_filler);`
)

// newProcedure returns the procedure that is the transaction, with its row of the
// history or without.
func newProcedure(d *db.Dialect, keeps bool) *db.Procedure {
	row := ""
	if keeps {
		row = procedureHistory
	}
	r := strings.NewReplacer("INTEGER_TYPE", d.IntegerType, "HISTORY", row)
	return db.NewProcedure("stroppy_tpcb",
		[]db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text}, []db.Type{db.Integer},
		map[db.Language]string{db.PLpgSQL: r.Replace(procedurePLpgSQL), db.PSM: r.Replace(procedurePSM)})
}
