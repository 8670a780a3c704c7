package mysql

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestAffectedRowsAreCounted checks the counts of affected rows of statements that are sent alone, together, or
// with statements that return rows.
func TestAffectedRowsAreCounted(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 10)
	sqltest.Execute(t, d, "CREATE PROCEDURE touch(IN n BIGINT) BEGIN UPDATE accounts SET version = version + 1; SELECT n; END")
	count := func(sql string) sqltest.Statement { return sqltest.With(&db.Statement{SQL: sql, Counted: true}, nil) }
	one, none, touch, see := sqltest.Counted(bank.Touch(1, 1)), sqltest.Counted(bank.Touch(77, 1)), bank.Touch(0, 1), bank.See(0)
	two, found := count("UPDATE accounts SET version = version + 1 WHERE ban < 2"), count("UPDATE accounts SET version = version WHERE ban < 3")
	call := sqltest.With(&db.Statement{SQL: "CALL touch(?)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer}}, []db.Value{sqltest.Number(7)})
	for _, tc := range []struct {
		name string
		work []sqltest.Statement
		want []int64 // affected rows, or -1 for a statement that returns one row, -2 for one that is not asked
		sent []int   // how many were sent before each, in pipelined mode
	}{
		{"alone", []sqltest.Statement{one}, []int64{1}, []int{0}},
		{"together", []sqltest.Statement{one, two, found, touch, none}, []int64{1, 2, 3, -2, 0}, []int{0, 0, 0, 0, 0}},
		{"after a SELECT", []sqltest.Statement{see, one, two}, []int64{-1, 1, 2}, []int{0, 1, 1}},
		{"between SELECTs", []sqltest.Statement{touch, see, two, touch, see, touch}, []int64{-2, -1, 2, -2, -1, -2}, []int{0, 0, 2, 2, 4, 4}},
		{"around a CALL", []sqltest.Statement{one, call, touch, two}, []int64{1, -1, -2, 2}, []int{0, 1, 1, 3}},
	} {
		for name, mode := range sqltest.Modes {
			for _, flush := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %v", tc.name, name, flush), func(t *testing.T) {
					s := newSession(t, d, mode, "")
					drivertest.Must(t, s.Begin(t.Context(), false))
					for i, x := range tc.work {
						_, err := s.Do(t.Context(), x.S, x.Args)
						if drivertest.Must(t, err); mode == db.Pipelined && s.ready != tc.sent[i] {
							t.Errorf("%d statements were sent before statement %d", s.ready, i)
						}
					}
					if flush {
						drivertest.Must(t, s.Flush(t.Context()))
					}
					drivertest.Must(t, s.Commit(t.Context()))
					for i, want := range tc.want {
						if r := s.Result(i); want >= 0 && r.Affected != want || want == -1 && r.Rows() != 1 {
							t.Errorf("result %d is %+v, want %d", i, r, want)
						}
					}
				})
			}
		}
	}
}

// TestProcedureCallsMixWithStatements checks the results of a transaction with a CALL at its start, middle or end,
// or with two.
func TestProcedureCallsMixWithStatements(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	sqltest.Execute(t, d, "CREATE PROCEDURE three(IN n BIGINT) BEGIN SELECT n; UPDATE accounts SET version = n; SELECT n + 1; SELECT n + 2; END",
		"CREATE PROCEDURE none() BEGIN UPDATE accounts SET version = version + 1; END")
	call := sqltest.With(&db.Statement{SQL: "CALL three(?)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer}}, []db.Value{sqltest.Number(5)})
	quiet := sqltest.With(&db.Statement{SQL: "CALL three(1)"}, nil)
	none := sqltest.With(&db.Statement{SQL: "CALL none()", Columns: []db.Type{db.Integer}}, nil)
	touch, see := bank.Touch(0, 0), bank.See(0)
	const unknown = -1
	for _, tc := range []struct {
		work    []sqltest.Statement
		rows    []int
		markers int // of the last packet that has statements
	}{
		{[]sqltest.Statement{call}, []int{3}, 1},
		{[]sqltest.Statement{none}, []int{0}, 1},
		{[]sqltest.Statement{touch, see, call}, []int{0, 1, 3}, 1},
		{[]sqltest.Statement{touch, see, call, touch}, []int{0, 1, 3, 0}, 1},
		{[]sqltest.Statement{see, none, touch, see}, []int{1, 0, 0, 1}, unknown},
		{[]sqltest.Statement{call, quiet, none, call, see, quiet}, []int{3, 0, 0, 3, 1, 0}, unknown},
	} {
		sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
			s := newSession(t, d, mode, "")
			for _, flush := range []bool{false, true} {
				drivertest.Must(t, sqltest.Transact(t.Context(), s, false, flush, tc.work...))
				for i, want := range tc.rows {
					if r := s.Result(i); r.Rows() != want {
						t.Errorf("result %d of %d: %+v, want %d rows", i, len(tc.work), r, want)
					}
				}
				if got := strings.Count(string(s.text), ended); mode == db.Pipelined && tc.markers != unknown && got != tc.markers {
					t.Errorf("%d markers in %s", got, s.text)
				}
			}
			if mode == db.Interactive && strings.Contains(string(s.text), ended) {
				t.Errorf("a CALL alone has a marker: %s", s.text)
			}
		})
	}
}

// TestRefusedStatementIsUnknownIfCommitWasReached checks the class of an error. The server may have reached COMMIT
// unless missing rows show otherwise.
func TestRefusedStatementIsUnknownIfCommitWasReached(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	refuse := func(number int) sqltest.Statement {
		return sqltest.With(&db.Statement{SQL: fmt.Sprintf("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d", number)}, nil)
	}
	nowhere, insert := sqltest.With(&db.Statement{SQL: "INSERT INTO nowhere VALUES (1)"}, nil), bank.Touch(0, 1)
	sqltest.Execute(t, d, "CREATE PROCEDURE refuse() BEGIN SELECT 1; SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1026; END")
	call := sqltest.With(&db.Statement{SQL: "CALL refuse()", Columns: []db.Type{db.Integer}}, nil)
	const full, unlisted = 1026, 5000 // ER_ERROR_ON_WRITE
	for _, tc := range []struct {
		name           string
		work           []sqltest.Statement
		code           string
		flushed, whole db.Class // without COMMIT in the packet, and with it
		statement      string   // that both errors name
	}{
		{"alone", []sqltest.Statement{refuse(full)}, "1026", db.Aborted, db.Unknown, ""},
		{"without rows", []sqltest.Statement{insert, refuse(full), insert}, "1026", db.Aborted, db.Unknown, ""},
		{"before rows", []sqltest.Statement{insert, refuse(full), bank.See(0)}, "1026", db.Aborted, db.Aborted, ""},
		{"between rows", []sqltest.Statement{bank.See(0), refuse(full), bank.See(0), insert}, "1026", db.Aborted, db.Aborted, ""},
		{"after rows", []sqltest.Statement{bank.See(0), refuse(full)}, "1026", db.Aborted, db.Unknown, ""},
		{"a call", []sqltest.Statement{insert, call}, "1026", db.Aborted, db.Unknown, ""},
		{"a call and more", []sqltest.Statement{insert, call, bank.See(0)}, "1026", db.Aborted, db.Aborted, ""},
		{"unlisted", []sqltest.Statement{refuse(unlisted), insert}, "5000", db.Fatal, db.Unknown, ""},
		{"unlisted before rows", []sqltest.Statement{refuse(unlisted), bank.See(0), insert}, "5000", db.Fatal, db.Fatal, ""},
		{"named alone", []sqltest.Statement{nowhere}, "1146", db.Fatal, db.Fatal, "INSERT"},
		{"named after rows", []sqltest.Statement{insert, bank.See(0), nowhere}, "1146", db.Fatal, db.Fatal, "INSERT"},
		{"named before rows", []sqltest.Statement{bank.See(0), sqltest.With(&db.Statement{SQL: "SELECT n FROM nowhere", Columns: []db.Type{db.Integer}}, nil), insert}, "1146", db.Fatal, db.Fatal, "SELECT"},
		{"one of two", []sqltest.Statement{bank.See(0), insert, nowhere}, "1146", db.Fatal, db.Fatal, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for class, flush := range map[*db.Class]bool{&tc.flushed: true, &tc.whole: false} {
				s := newSession(t, d, db.Pipelined, "")
				err := sqltest.Transact(t.Context(), s, false, flush, tc.work...)
				sqltest.WantError(t, fmt.Sprint("flushed ", flush), err, *class, tc.code)
				if named := strings.HasPrefix(err.Error(), "execute "+tc.statement) && tc.statement != ""; named != (tc.statement != "") {
					t.Errorf("%v does not name the statement", err)
				} else if !named && (strings.Contains(err.Error(), "INSERT") || strings.Contains(err.Error(), "SIGNAL")) {
					t.Errorf("%v names a statement", err)
				}
			}
			if cents := bank.Balance(t, newSession(t, d, db.Pipelined, ""), 0); cents != sqltest.Opening {
				t.Errorf("a refused transaction has left %d", cents)
			}
		})
	}
}

// TestUndeclaredResultColumnsAreRefused checks that a statement without declared columns fails if its rows could
// be mistaken for another statement's rows.
func TestUndeclaredResultColumnsAreRefused(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	undeclared := sqltest.With(&db.Statement{SQL: "SELECT balance, version FROM accounts WHERE ban = 1"}, nil)
	for _, work := range [][]sqltest.Statement{{undeclared, bank.See(0)}, {bank.See(0), undeclared}, {bank.See(0), undeclared, bank.See(0)}} {
		s := newSession(t, d, db.Pipelined, "")
		if err := sqltest.Transact(t.Context(), s, false, true, work...); !errors.Is(err, errUnasked) || db.ClassOf(err) != db.Unavailable {
			t.Errorf("before COMMIT: %v", err)
		}
		drivertest.Must(t, s.Reset(t.Context()))
		if err := sqltest.Transact(t.Context(), s, false, false, work...); !errors.Is(err, errUnasked) || db.ClassOf(err) != db.Unknown {
			t.Errorf("with COMMIT: %v", err)
		}
	}
}

// editor is a proxy before a server.
type editor struct {
	net.Listener
	server string
	// edit, if set, receives each packet of the server with its four-byte header and may change it. False
	// ends the connection.
	edit atomic.Pointer[func(packet []byte) bool]
}

func edited(t *testing.T, server string) *editor {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	e := &editor{Listener: l, server: server}
	drivertest.Close(t, e)
	go func() {
		for {
			conn, err := e.Accept()
			if err != nil {
				return
			}
			go e.serve(conn)
		}
	}()
	return e
}

func (e *editor) serve(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp4", e.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, conn)
	}()
	for {
		packet := make([]byte, 4, 1024)
		if _, err := io.ReadFull(server, packet); err != nil {
			return
		}
		packet = append(packet, make([]byte, int(packet[0])|int(packet[1])<<8|int(packet[2])<<16)...)
		if _, err := io.ReadFull(server, packet[4:]); err != nil {
			return
		}
		if edit := e.edit.Load(); edit != nil && !(*edit)(packet) {
			return
		}
		if _, err := conn.Write(packet); err != nil {
			return
		}
	}
}

// TestTruncatedAnswerMakesCommitUnknown checks that a commit is unknown if the answers end early, even if it was
// applied.
func TestTruncatedAnswerMakesCommitUnknown(t *testing.T) {
	m, url := fresh(t)
	direct := drivertest.Open(t, Open, url)
	bank.Make(t, direct, 2)
	proxy := edited(t, hostOf(m))
	d := drivertest.Open(t, Open, strings.Replace(url, hostOf(m), proxy.Addr().String(), 1))
	// last makes the n-th OK packet the last answer
	// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html).
	last := func(n int) func([]byte) bool {
		const moreResultsExist = 8
		return func(packet []byte) bool {
			if packet[4] != 0 {
				return true
			}
			if n--; n == 0 {
				status := packet[4+3:] // behind a header and two numbers of one byte
				binary.LittleEndian.PutUint16(status, binary.LittleEndian.Uint16(status)&^moreResultsExist)
			}
			return true
		}
	}
	// hangsUp ends the connection instead of the n-th OK packet.
	hangsUp := func(n int) func([]byte) bool {
		return func(packet []byte) bool {
			if packet[4] == 0 {
				n--
			}
			return n > 0
		}
	}
	touch, see := bank.Touch(0, 1), bank.See(0)
	for _, tc := range []struct {
		name  string
		work  []sqltest.Statement
		edit  func([]byte) bool
		ended bool // the server has said that it was all
		done  bool // it had come to the end of COMMIT
	}{
		{"hangs up at COMMIT", []sqltest.Statement{touch, see, touch}, hangsUp(4), false, true},
		{"hangs up at COMMIT behind a SELECT", []sqltest.Statement{touch, touch, see}, hangsUp(4), false, true},
		{"hangs up at a statement", []sqltest.Statement{touch, see, touch}, hangsUp(3), false, false},
		{"leaves out rows", []sqltest.Statement{touch, see, touch}, last(2), true, false},
		{"leaves out COMMIT where there are no rows", []sqltest.Statement{touch, touch}, last(3), true, false},
		{"leaves out statements where there are no rows", []sqltest.Statement{touch, touch}, last(1), true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, other := newSession(t, d, db.Pipelined, ""), newSession(t, direct, db.Pipelined, "")
			before := bank.Balance(t, other, 0)
			row, err := s.row("SELECT CONNECTION_ID()")
			drivertest.Must(t, err)
			proxy.edit.Store(&tc.edit)
			err = sqltest.Transact(t.Context(), s, false, false, tc.work...)
			proxy.edit.Store(nil)
			sqltest.WantError(t, "the commit", err, db.Unknown, "")
			if errors.Is(err, errUnanswered) != tc.ended {
				t.Errorf("the error is %v", err)
			}
			until(t, direct, "SELECT 1 FROM (SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE ID = "+row[0]+") p WHERE n = 0")
			if after := bank.Balance(t, other, 0); after != before+2 && (tc.done || after != before) {
				t.Errorf("the balance was %d and is %d, done %v", before, after, tc.done)
			}
			drivertest.Must(t, s.Reset(t.Context()))
			drivertest.Must(t, sqltest.Transact(t.Context(), s, false, false, tc.work...))
		})
	}
}
