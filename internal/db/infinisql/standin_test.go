package infinisql

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// standIn speaks the protocol of the server. It has one row, whose balance after each update is 40.
type standIn struct {
	mu   sync.Mutex
	sent []string // the statements, without the statements that Open sends
}

func (s *standIn) serve(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		message, err := b.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		s.answer(b, query.String)
	}
}

// take returns the statements since the last call.
func (s *standIn) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

func (s *standIn) answer(b *pgproto3.Backend, sql string) {
	s.mu.Lock()
	s.sent = append(s.sent, sql)
	s.mu.Unlock()
	word, rest, _ := strings.Cut(sql, " ")
	tag := sql
	switch {
	case strings.Contains(rest, "absent"):
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42704", Message: "no table"})
		return
	case word == "SELECT":
		fields := [][]byte{[]byte("3"), []byte("40")}
		if strings.HasPrefix(rest, "Paid") {
			fields = fields[1:]
		}
		b.Send(&pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, len(fields))})
		b.Send(&pgproto3.DataRow{Values: fields})
	case strings.HasSuffix(rest, "= 99"):
		tag = "UPDATE 0"
	case rest != "":
		tag = word + " 1"
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

// TestTransactionSendsExpectedStatements compares the statements of each transaction with the expected statements.
func TestTransactionSendsExpectedStatements(t *testing.T) {
	var server standIn
	address := drivertest.Serve(t, server.serve)
	d, err := Open(t.Context(), "infinisql://u:p@"+address+"/d")
	drivertest.Must(t, err)
	opened, err := d.RecordSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, opened)
	s := opened.(*session)
	c := &db.Collection{Name: "t", ID: db.Integer, Fields: []db.Field{{Name: "balance", Type: db.Integer}}}
	add := &db.Update{Collection: c, Add: []int{1}}
	ids, one := []db.Value{{Int: 3}, {Int: 99}}, []db.Value{{Int: 1}, {Int: 1}}
	var found [2]db.Record
	for _, test := range []struct {
		name string
		do   func(ctx context.Context) error
		sent []string
	}{
		{"a change that returns what was there", func(ctx context.Context) error {
			before, err := s.FindAndUpdate(ctx, add, ids[0], one)
			if !before.Found || before.Values[1].Int != 39 {
				t.Errorf("the record was %+v", before)
			}
			return err
		}, []string{"BEGIN", "UPDATE t SET balance = balance + 1 WHERE id = 3", "SELECT id, balance FROM t WHERE id = 3", "COMMIT"}},
		{"changes and an insertion", func(ctx context.Context) error {
			n, err := s.Update(ctx, add, ids, one)
			if err != nil || n != 1 {
				t.Errorf("found %d records, %v", n, err)
			}
			return s.Insert(ctx, c, []db.Value{{Int: 4}, {Int: 5}})
		}, []string{"BEGIN", "UPDATE t SET balance = balance + 1 WHERE id = 3", "UPDATE t SET balance = balance + 1 WHERE id = 99", "INSERT INTO t VALUES (4, 5)", "COMMIT"}},
		{"a read before a change", func(ctx context.Context) error {
			if err := s.Find(ctx, c, ids[:1], found[:1]); err != nil || found[0].Values[1].Int != 40 {
				t.Errorf("finds %+v, %v", found, err)
			}
			_, err := s.Update(ctx, add, ids[:1], one[:1])
			return err
		}, []string{"SELECT id, balance FROM t WHERE id = 3 NO LOCK", "BEGIN", "UPDATE t SET balance = balance + 1 WHERE id = 3", "COMMIT"}},
		{"a change after a read of the transaction", func(ctx context.Context) error {
			_, err := s.Update(ctx, add, ids[:1], one[:1])
			drivertest.Must(t, err)
			drivertest.Must(t, s.Find(ctx, c, ids[1:], found[:1]))
			if _, err = s.Update(ctx, add, ids[1:], one[1:]); db.ClassOf(err) != db.Fatal || err == nil {
				t.Errorf("an update that the server would lose: %v", err)
			}
			return s.Begin(ctx, false)
		}, []string{"BEGIN", "UPDATE t SET balance = balance + 1 WHERE id = 3", "SELECT id, balance FROM t WHERE id = 99", "ROLLBACK"}},
	} {
		server.take()
		drivertest.Must(t, s.Begin(t.Context(), false))
		err := test.do(t.Context())
		if err == nil {
			err = s.Commit(t.Context())
		}
		if sent := server.take(); err != nil || !slices.Equal(sent, test.sent) {
			t.Errorf("%s: %v, sends %q", test.name, err, sent)
		}
	}
	p := &db.Procedure{Name: "Paid", Params: []db.Type{db.Integer, db.Integer}, Columns: []db.Type{db.Integer}}
	r, err := s.Call(t.Context(), p, one)
	if sent := server.take(); err != nil || r.Rows() != 1 || r.Row(0)[0].Int != 40 || !slices.Equal(sent, []string{"SELECT Paid (1, 1)"}) {
		t.Errorf("a call returns %+v, %v, and sends %q", r, err, sent)
	}
	if there, err := d.Exists(t.Context(), &db.Collection{Name: "absent", ID: db.Integer}); there || err != nil {
		t.Errorf("a table that is not there: %v, %v", there, err)
	}
	rows := 0
	drivertest.Must(t, s.Scan(t.Context(), c, db.Value{Null: true}, 0, func([]db.Value) error { rows++; return nil }))
	if rows != 1 {
		t.Errorf("a scan finds %d records", rows)
	}
}
