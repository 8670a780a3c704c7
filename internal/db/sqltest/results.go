package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// Extremes returns inserts of six rows (id, whole number, money, text) at the bounds of the allowed values, for
// WantExtremes. The fifth row has the given text.
func Extremes(insert *db.Statement, text string) []Statement {
	row := func(id int64, i, m db.Value, text string, null bool) Statement {
		return Statement{insert, []db.Value{Number(id), i, m, {Text: []byte(text), Null: null}}}
	}
	return []Statement{
		row(1, Number(math.MinInt64), Number(math.MinInt64), "smallest", false),
		row(2, Number(math.MaxInt64), Number(math.MaxInt64), "largest", false),
		row(3, db.Value{Null: true}, db.Value{Null: true}, "", true),
		row(4, Number(0), Number(0), "", false),
		row(5, Number(-1), Number(-1), text, false),
		row(6, Number(6), Number(150), "x", false),
	}
}

// WantExtremes checks the rows of Extremes that the server returned, except the ids.
func WantExtremes(t *testing.T, r db.Result, text string) {
	t.Helper()
	if r.Rows() != 6 || r.Row(0)[0].Int != math.MinInt64 || r.Row(0)[1].Int != math.MinInt64 || r.Row(1)[1].Int != math.MaxInt64 ||
		!r.Row(2)[0].Null || !r.Row(2)[1].Null || !r.Row(2)[2].Null || r.Row(3)[2].Null || string(r.Row(4)[2].Text) != text {
		t.Errorf("rows %+v", r)
	}
}

// SameResults runs the same transaction statement by statement, in one round trip, and in two round trips. It runs each
// form twice, because everything is prepared and all buffers are used the second time. It returns the results. They
// must be the same each time, except the affected rows of statements that are not Counted.
func SameResults(t *testing.T, d db.SQL, work []Statement) (results []db.Result) {
	t.Helper()
	var printed string
	for _, way := range []struct {
		name  string
		mode  db.Mode
		flush bool
	}{{"interactive", db.Interactive, false}, {"one round trip", db.Pipelined, false}, {"two round trips", db.Pipelined, true}} {
		s := Session(t, d, way.mode, "")
		for range 2 {
			Execute(t, d, "UPDATE accounts SET version = 0, last_transfer = 0")
			if err := Transact(t.Context(), s, false, way.flush, work...); err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			results = make([]db.Result, len(work))
			for i := range work {
				if results[i] = *s.Result(i); !work[i].S.Counted {
					results[i].Affected = 0
				}
			}
			if text := fmt.Sprint(results); printed == "" {
				printed = text
			} else if text != printed {
				t.Errorf("%s: %s, want %s", way.name, text, printed)
			}
		}
	}
	return results
}

// Unreadable lets statements return values that their types cannot hold. Before the commit is sent the error is fatal
// and the session stays ready. Afterwards the outcome is unknown.
func Unreadable(t *testing.T, d db.SQL, statements map[string]db.Type) {
	for sql, typ := range statements {
		bad := Statement{S: &db.Statement{SQL: sql, Columns: []db.Type{typ}}}
		for _, flush := range []bool{false, true} {
			mode := db.Interactive
			if flush {
				mode = db.Pipelined
			}
			s := Session(t, d, mode, "")
			WantError(t, sql, Transact(t.Context(), s, false, flush, bad), db.Fatal, "")
			if err := Transact(t.Context(), s, false, false); err != nil {
				t.Errorf("%s: the session is not ready: %v", sql, err)
			}
		}
		s := Session(t, d, db.Pipelined, "")
		WantError(t, sql, Transact(t.Context(), s, false, false, bad), db.Unknown, "")
	}
}

// Large sends and receives more than the buffers of the sockets hold. Each answer of echo is its parameter.
func Large(t *testing.T, d db.SQL, echo *db.Statement, statements int) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s := Session(t, d, mode, "")
		var work []Statement
		for range statements {
			work = append(work, Statement{echo, []db.Value{{Text: text}}})
		}
		for range 2 {
			drivertest.Must(t, Transact(t.Context(), s, false, false, work...))
			for i := range work {
				if r := s.Result(i); r.Rows() != 1 || !bytes.Equal(r.Row(0)[0].Text, text) {
					t.Fatalf("result %d is not what was sent", i)
				}
			}
		}
	})
}

// Stream holds the statements of Streams.
type Stream struct {
	Many *db.Statement // the rows (n, n cents, "row n") for n from $1 to Last
	Last int64
	Bad  *db.Statement // fails after some rows
	Code string        // the code of Bad's error
}

// Streams reads many rows outside a transaction, both to the end and only in part.
func Streams(t *testing.T, d db.SQL, x Stream) {
	s := Session(t, d, db.Pipelined, "")
	from := func(n int64) []db.Value { return []db.Value{Number(n)} }
	nothing := func([]db.Value) error { return nil }
	var n int64
	err := s.Query(t.Context(), x.Many, from(1), func(row []db.Value) error {
		if n++; row[0].Int != n || row[1].Int != n || string(row[2].Text) != fmt.Sprint("row ", n) {
			return fmt.Errorf("row %d is %+v", n, row)
		}
		return nil
	})
	if err != nil || n != x.Last {
		t.Fatal(n, err)
	}
	enough := errors.New("enough")
	err = s.Query(t.Context(), x.Many, from(1), func([]db.Value) error { return enough })
	if WantError(t, "a caller that has enough", err, db.Unknown, ""); err.(*db.Error).Err != enough {
		t.Error(err)
	}
	drivertest.Must(t, s.Reset(t.Context()))
	WantError(t, "an error after some rows", s.Query(t.Context(), x.Bad, nil, nothing), db.Fatal, x.Code)
	if err := s.Query(t.Context(), x.Many, from(x.Last-1), nothing); err != nil {
		t.Errorf("after an error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Query(ctx, x.Many, from(1), func([]db.Value) error { cancel(); return nil })
	if err == nil { // all rows may have been under way already
		t.Log("the rows were faster than the cancellation")
		return
	}
	WantError(t, "after a query that was cut off", s.Begin(t.Context(), false), db.Unavailable, "")
}
