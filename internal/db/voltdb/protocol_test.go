package voltdb

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"stroppy/internal/db"
)

// TestDecimalRoundTrip checks that an amount survives a round trip, and that an amount with a fraction of a cent
// is refused.
func TestDecimalRoundTrip(t *testing.T) {
	amounts := []int64{0, 1, -1, 100, -100, math.MaxInt64, -math.MaxInt64}
	for range 1000 {
		amounts = append(amounts, int64(rand.Uint64()>>rand.IntN(64)), -int64(rand.Uint64()>>(1+rand.IntN(63))))
	}
	for _, cents := range amounts {
		if cents == math.MinInt64 {
			continue
		}
		b := appendDecimal(nil, cents)
		if got, null, err := parseDecimal(b); got != cents || null || err != nil {
			t.Fatalf("%d is read as %d, %t, %v", cents, got, null, err)
		}
	}
	if _, null, err := parseDecimal(append([]byte{0x80}, make([]byte, 15)...)); !null || err != nil {
		t.Errorf("NULL is read as %t, %v", null, err)
	}
	fraction := appendDecimal(nil, 7)
	fraction[15]++
	for _, wrong := range [][]byte{fraction, append([]byte{0x40}, make([]byte, 15)...), {0, 0, 0, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if got, null, err := parseDecimal(wrong); err == nil || null {
			t.Errorf("% x is read as %d", wrong, got)
		}
	}
}

// reply builds an answer of one table.
func reply(s status, text string, names []string, types []byte, rows ...[]byte) []byte {
	b := append(binary.BigEndian.AppendUint64([]byte{0}, 7), hasText, byte(s))
	b = appendString(b, text)
	b = append(b, 0x80, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, 1)
	table := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 0, 0}, uint16(len(types)))
	table = append(table, types...)
	for _, name := range names {
		table = appendString(table, name)
	}
	table = binary.BigEndian.AppendUint32(table, uint32(len(rows)))
	for _, row := range rows {
		table = append(binary.BigEndian.AppendUint32(table, uint32(len(row))), row...)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(table))), table...)
}

// TestTruncatedAnswerIsAnError checks that an answer is read as it was written. If the answer is cut anywhere, it
// is an error and never fewer rows.
func TestTruncatedAnswerIsAnError(t *testing.T) {
	row := appendString(binary.BigEndian.AppendUint64(nil, 5), "five")
	empty := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, 1<<63), math.MaxUint32)
	whole := reply(success, "", []string{"n", "t"}, []byte{typeBigInt, typeString}, row, empty)
	read := func(body []byte) (r db.Result, err error) {
		a, err := parseAnswer(body)
		if err == nil {
			err = a.into(&r)
		}
		return r, err
	}
	r, err := read(whole)
	if err != nil || r.Rows() != 2 || r.Row(0)[0].Int != 5 || string(r.Row(0)[1].Text) != "five" || !r.Row(1)[0].Null || !r.Row(1)[1].Null {
		t.Fatalf("read as %+v, %v", r, err)
	}
	for n := range whole {
		if r, err := read(whole[:n]); err == nil {
			t.Fatalf("of %d bytes %d are read as %+v", len(whole), n, r)
		}
	}
	changed, err := read(reply(success, "", []string{"modified_tuples"}, []byte{typeBigInt}, binary.BigEndian.AppendUint64(nil, 3)))
	if err != nil || changed.Affected != 3 || changed.Rows() != 0 {
		t.Errorf("changes are read as %+v, %v", changed, err)
	}
	for range 20_000 { // whatever the bytes are, nothing panics
		damaged := append([]byte(nil), whole...)
		for range 1 + rand.IntN(4) {
			damaged[rand.IntN(len(damaged))] = byte(rand.Uint32())
		}
		_, _ = read(damaged)
	}
}

// TestLoginErrorsAreClassified checks that the class of a login error differs between an unavailable node and a
// refused user.
func TestLoginErrorsAreClassified(t *testing.T) {
	for code, want := range map[int8]struct {
		class db.Class
		says  string
	}{
		loginFull:      {db.Unavailable, "as many clients as it takes"},
		loginTimeout:   {db.Unavailable, "too slow"},
		loginRejoining: {db.Unavailable, "on its way back into its cluster"},
		loginRefused:   {db.Fatal, "wrong user or password"},
		3:              {db.Fatal, "refuses the login with the code 3"},
	} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := conn.Read(make([]byte, 1024)); err == nil {
				_, _ = conn.Write([]byte{0, 0, 0, 2, 1, byte(code)})
			}
		}()
		_, err = Open(t.Context(), "voltdb://"+l.Addr().String())
		l.Close()
		if err == nil || db.ClassOf(err) != want.class || !strings.Contains(err.Error(), want.says) {
			t.Errorf("the code %d is %v: %v", code, db.ClassOf(err), err)
		}
	}
}

// TestServerErrorTextsAreClassified checks the class of error texts that were recorded from the server.
func TestServerErrorTextsAreClassified(t *testing.T) {
	for _, test := range []struct {
		status     status
		text       string
		class      db.Class
		constraint db.ConstraintKind
	}{
		{gracefulFailure, "VOLTDB ERROR: CONSTRAINT VIOLATION\n  Attempted violation of constraint\n  Constraint Type UNIQUE, Table CatalogId LED\nRelevant Tuples:\nsecret", db.Constraint, db.UniqueKey},
		{gracefulFailure, "VOLTDB ERROR: CONSTRAINT VIOLATION\n  Attempted violation of constraint\n  Constraint Type NOT_NULL, Table CatalogId ACC\nRelevant Tuples:\nsecret", db.Constraint, db.NotNull},
		{gracefulFailure, "VOLTDB ERROR: SQL ERROR\n  Adding 9223372036854775807 and 1 will overflow BigInt storage\n    at x", db.Constraint, db.CheckFailed},
		{gracefulFailure, "VOLTDB ERROR: SQL ERROR\n  Attempted to divide 1 by 0", db.Constraint, db.ForeignKey},
		{gracefulFailure, "VOLTDB ERROR: SQL ERROR\n  Attempted to divide 2 by 0", db.Aborted, 0},
		{gracefulFailure, "VOLTDB ERROR: SQL ERROR\n  Attempted to divide 3 by 0", db.Constraint, db.UniqueKey},
		{unexpectedFailure, "Procedure x_1 was not found", db.Aborted, 0},
		{unexpectedFailure, "something else", db.Unknown, 0},
		{gracefulFailure, "PROCEDURE x EXPECTS 14 PARAMS, BUT RECEIVED 1", db.Fatal, 0},
		{gracefulFailure, `SQL error while compiling query: SQL Syntax error in "SELEC" unexpected token: SELEC`, db.Fatal, 0},
		{gracefulFailure, "what is not known", db.Aborted, 0},
		{responseUnknown, "Transaction dropped due to change in mastership. It is possible the transaction was committed", db.Unknown, 0},
		{gracefulFailure, "Transaction dropped due to change in mastership. It is possible the transaction was committed", db.Unknown, 0},
		{serverUnavailable, "the server is paused", db.Unavailable, 0},
		{txnRestart, "TRANSACTION RESTART", db.Unknown, 0},
		{status(-77), "a status of a later version", db.Unknown, 0},
	} {
		err := failed("call x", &answer{status: test.status, text: []byte(test.text)})
		if err.Class != test.class || err.Constraint != test.constraint || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %v of kind %d: %v", test.text, err.Class, err.Constraint, err)
		}
	}
}
