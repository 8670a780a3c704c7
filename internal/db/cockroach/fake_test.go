package cockroach

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/db/drivertest"
)

// fake is a server with configurable answers, for cases that a real server does not produce on request.
type fake struct {
	version string
	levels  map[string]string // isolation that is asked for → that a transaction has; none: the same
	fails   map[string]string // statement → SQLSTATE
	hangsUp string            // the statement at which it ends the connection
}

// serve returns the URL of the fake.
func (f *fake) serve(t *testing.T) string {
	t.Helper()
	return "cockroach://root@" + drivertest.Serve(t, func(conn net.Conn) {
		(&fakeSession{fake: f, Backend: pgproto3.NewBackend(conn, conn), conn: conn, status: 'I', prepared: map[string]string{}, level: "serializable"}).run()
	}) + "/defaultdb?sslmode=disable"
}

type fakeSession struct {
	*fake
	*pgproto3.Backend
	conn     net.Conn
	status   byte
	level    string
	prepared map[string]string
	bound    string
	skipping bool
}

func (s *fakeSession) run() {
	defer s.conn.Close()
	if _, err := s.ReceiveStartupMessage(); err != nil {
		return
	}
	s.Send(&pgproto3.AuthenticationOk{})
	s.Send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	for s.Flush() == nil {
		message, err := s.Receive()
		if err != nil || !s.handle(message) {
			return
		}
	}
}

func (s *fakeSession) handle(message pgproto3.FrontendMessage) bool {
	switch m := message.(type) {
	case *pgproto3.Query:
		for statement := range strings.SplitSeq(m.String, "; ") {
			if !s.answer(statement, true) {
				return false
			}
			if s.skipping {
				break
			}
		}
		s.skipping = false
		s.Send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	case *pgproto3.Sync:
		s.skipping = false
		s.Send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	case *pgproto3.Terminate:
		return false
	default:
		if !s.skipping {
			return s.extended(message)
		}
	}
	return true
}

func (s *fakeSession) extended(message pgproto3.FrontendMessage) bool {
	switch m := message.(type) {
	case *pgproto3.Parse:
		s.prepared[m.Name] = m.Query
		s.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Describe:
		s.Send(&pgproto3.ParameterDescription{})
		s.Send(&pgproto3.NoData{})
	case *pgproto3.Bind:
		s.bound = s.prepared[m.PreparedStatement]
		s.Send(&pgproto3.BindComplete{})
	case *pgproto3.Execute:
		return s.answer(s.bound, false)
	}
	return true
}

// answer answers one statement. The session may end afterwards.
func (s *fakeSession) answer(statement string, described bool) bool {
	code := s.fails[statement]
	switch {
	case statement == s.hangsUp && statement != "":
		return false
	case code != "":
		if s.status == 'T' && statement != "COMMIT" {
			s.status = 'E'
		} else if statement == "COMMIT" {
			s.status = 'I'
		}
		s.skipping = true
		s.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: "as the test wants it"})
		return true
	}
	tag := strings.Fields(statement)[0]
	if tag == "BEGIN" {
		s.status = 'T'
		if _, level, asked := strings.Cut(statement, " LEVEL "); asked {
			s.level = level
			if given := s.levels[level]; given != "" {
				s.level = given
			}
		}
	} else if tag == "COMMIT" || tag == "ROLLBACK" {
		s.status, s.level = 'I', "serializable"
	}
	value, one := "", true
	switch {
	case statement == "SELECT version()":
		value = s.version
	case statement == "SHOW transaction_isolation":
		value = s.level
	default:
		one = false
	}
	if one && described {
		s.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("value"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}}})
		s.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(value)}})
	}
	s.Send(&pgproto3.CommandComplete{CommandTag: []byte(fmt.Sprint(tag))})
	return true
}
