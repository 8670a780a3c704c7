package tpcb

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// The languages that the procedure is written in.
const (
	plpgsql = "plpgsql"
	psm     = "sql/psm" // ISO/IEC 9075-4
)

// The statements of the procedure are those of the transaction; it returns the
// account's balance after it.
const (
	procedurePLpgSQL = `CREATE OR REPLACE FUNCTION NAME(
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

	procedurePSM = `CREATE PROCEDURE IF NOT EXISTS NAME(
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

// procedure returns the name of the procedure and what makes it. The name holds a
// digest of the text, so that processes of different versions of this program can
// call theirs at the same time.
func procedure(d *db.Dialect, keeps bool) (name, create string) {
	text, row := procedurePLpgSQL, ""
	if d.Procedures == psm {
		text = procedurePSM
	}
	if keeps {
		row = procedureHistory
	}
	text = strings.NewReplacer("INTEGER_TYPE", d.IntegerType, "HISTORY", row).Replace(text)
	digest := fnv.New32a()
	digest.Write([]byte(text)) // which never fails
	name = fmt.Sprintf("stroppy_tpcb_%08x", digest.Sum32())
	return name, strings.Replace(text, "NAME", name, 1)
}

func createProcedure(d *db.Dialect, keeps bool) string {
	_, create := procedure(d, keeps)
	return create
}

// callProcedure returns the statement that calls it.
func callProcedure(d *db.Dialect, keeps bool) *db.Statement {
	name, _ := procedure(d, keeps)
	verb := "SELECT "
	if d.Procedures == psm {
		verb = "CALL "
	}
	return d.Write(verb, name, "(").Param(db.Integer).Text(", ").Param(db.Integer).Text(", ").Param(db.Integer).
		Text(", ").Param(db.Integer).Text(", ").Param(db.Text).Text(")").End(db.Integer)
}

// addCall adds the call that is the whole transaction.
func (c *sqlClient) addCall(ctx context.Context, tx *history.Transaction) error {
	putFiller(&c.filler, tx.ID)
	for i, op := range [...]int{opAccount, opTeller, opBranch} {
		c.args[i] = db.Value{Int: c.id(&tx.Ops[op])}
	}
	c.args[3], c.args[4] = db.Value{Int: tx.Ops[opAccount].Amount}, db.Value{Text: c.filler[:]}
	result, err := c.session.Do(ctx, c.call, c.args[:5])
	c.results = [operations]int{result, -1, -1}
	return err
}
