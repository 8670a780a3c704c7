package sqltest

import (
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// Procedures defines a procedure twice and calls it, on separate sessions and on streams of one connection. A call that
// fails changes nothing. A missing language is an error.
func Procedures(t *testing.T, d db.SQL, b *Bank) {
	b.Make(t, d, 2)
	p := db.NewProcedure("touch", []db.Type{db.Decimal, db.Text, db.Integer}, []db.Type{db.Decimal, db.Integer}, map[db.Language]string{
		db.PLpgSQL: `CREATE OR REPLACE FUNCTION PROCEDURE_NAME(cents NUMERIC, b TEXT, n BIGINT)
			RETURNS TABLE (seen NUMERIC(20,2), counted BIGINT) LANGUAGE plpgsql AS $body$
			BEGIN
				UPDATE accounts a SET version = a.version + 1 WHERE a.bic = b AND a.ban = n;
				UPDATE accounts a SET balance = a.balance + cents WHERE a.bic = b AND a.ban = n;
				RETURN QUERY SELECT a.balance::NUMERIC(20,2), a.version::BIGINT FROM accounts a WHERE a.bic = b AND a.ban = n;
			END $body$`,
		db.PSM: `CREATE PROCEDURE PROCEDURE_NAME(IN cents DECIMAL(20,2), IN b VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin, IN n BIGINT)
			MODIFIES SQL DATA
			BEGIN
				UPDATE accounts SET version = version + 1 WHERE bic = b AND ban = n;
				UPDATE accounts SET balance = balance + cents WHERE bic = b AND ban = n;
				SELECT balance, version FROM accounts WHERE bic = b AND ban = n;
			END`,
	})
	for range 2 {
		drivertest.Must(t, db.DefineProcedure(t.Context(), d, p))
	}
	call := func(s *db.SQLCaller, cents int64) (*db.Result, error) {
		return s.Call(t.Context(), p, []db.Value{Number(cents), {Text: BIC}, Number(1)})
	}
	version := int64(0)
	try := func(session db.SQLSession) {
		t.Helper()
		s := d.Dialect().NewCaller(session)
		drivertest.Close(t, s)
		version++
		if r, err := call(s, 1); err != nil || r.Rows() != 1 || r.Row(0)[0].Int != Opening+version || r.Row(0)[1].Int != version {
			t.Errorf("call %d: %+v, %v", version, r, err)
		}
		if _, err := call(s, -2*Opening); db.ClassOf(err) != db.Constraint || db.ConstraintOf(err) != db.CheckFailed {
			t.Errorf("a call that overdraws: %v", err)
		}
	}
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s, err := d.Session(t.Context(), db.SessionOptions{Mode: mode})
		drivertest.Must(t, err)
		try(s)
	})
	if several, ok := d.(db.Multiplexer[db.SQLSession]); ok {
		streams, err := several.Streams(t.Context(), 3, db.SessionOptions{Mode: db.Pipelined})
		drivertest.Must(t, err)
		for _, s := range streams {
			try(s)
		}
	}
	unknown := db.NewProcedure("touch", nil, nil, map[db.Language]string{"ada": "procedure PROCEDURE_NAME"})
	if err := db.DefineProcedure(t.Context(), d, unknown); err == nil {
		t.Error("a procedure in a language that the database does not have is taken")
	}
}
