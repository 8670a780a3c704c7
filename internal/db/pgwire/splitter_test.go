package pgwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// split starts a proxy before the server at a URL. Like some poolers, it sends its own Sync after each statement, so
// that each becomes a transaction. If lasting is set, settings for one transaction persist. It returns the proxy's
// URL.
func split(t *testing.T, server string, lasting bool) string {
	t.Helper()
	return drivertest.Relay(t, server, func(client, backend net.Conn) {
		asked := make(chan bool, 1000) // for each ReadyForQuery to come, whether the client has asked for it
		go toBackend(client, backend, asked, lasting)
		toClient(client, backend, asked)
	})
}

// message reads one message with a type of kind bytes, which is 0 for the first message of a session.
func message(r io.Reader, kind int) ([]byte, error) {
	b := make([]byte, kind+4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(b[kind:])-4)
	_, err := io.ReadFull(r, rest)
	return append(b, rest...), err
}

func toBackend(client, backend net.Conn, asked chan<- bool, lasting bool) {
	defer backend.Close()
	m, err := message(client, 0)
	asked <- true
	for err == nil {
		if _, err = backend.Write(m); err != nil {
			return
		}
		if m, err = message(client, 1); err != nil {
			return
		}
		switch m[0] {
		case 'S', 'Q':
			asked <- true
		case 'E':
			asked <- false
			m = append(m, syncAll...)
		case 'P':
			if lasting {
				m = bytes.ReplaceAll(m, []byte("', true)\x00"), []byte("',false)\x00"))
			}
		}
	}
}

func toClient(client, backend net.Conn, asked <-chan bool) {
	defer client.Close()
	for {
		m, err := message(backend, 1)
		if err != nil {
			return
		}
		if m[0] == 'Z' && !<-asked {
			continue
		}
		if _, err := client.Write(m); err != nil {
			return
		}
	}
}

// TestTransferIsWholeBehindStatementProxy checks that a transfer is complete behind a proxy that makes each
// statement a transaction.
func TestTransferIsWholeBehindStatementProxy(t *testing.T) {
	_, _, url := fresh(t)
	bank.Make(t, drivertest.Open(t, openURL, url), 2)
	over := []sqltest.Statement{bank.Touch(0, 100), bank.Touch(1, -sqltest.Opening-100)}
	for name, lasting := range map[string]bool{"settings end": false, "settings last": true} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), drivertest.Open(t, openURL, split(t, url, lasting))
			if d.implicit {
				t.Error("statements are torn apart, and Open has not seen it")
			}
			s := newSession(t, d, db.Pipelined, "")
			before := bank.Balance(t, s, 0)
			for _, after := range [][]sqltest.Statement{nil, {bank.See(0), bank.Touch(0, 100)}} {
				err := sqltest.Transact(ctx, s, false, false, append(over[:2:2], after...)...)
				sqltest.WantError(t, "a transfer that overdraws", err, db.Constraint, "23514")
				if cents := bank.Balance(t, s, 0); cents != before {
					t.Errorf("a part of a transfer was applied: %d, then %d", before, cents)
				}
			}
			there, back := []sqltest.Statement{bank.Touch(0, 100), bank.Touch(1, -100), bank.See(0)}, []sqltest.Statement{bank.Touch(0, -100), bank.Touch(1, 100)}
			drivertest.Must(t, sqltest.Transact(ctx, s, false, false, there...))
			if cents := s.Result(2).Row(0)[0].Int; cents != before+100 {
				t.Errorf("after a transfer of 100: %d, then %d", before, cents)
			}
			drivertest.Must(t, sqltest.Transact(ctx, s, false, false, back...))

			// This proxy does tear transactions apart: a driver that trusted it would fail.
			trusting := newSession(t, way{implicit: true}.on(d), db.Pipelined, "")
			sqltest.WantError(t, "a transfer that overdraws", sqltest.Transact(ctx, trusting, false, false, over...), db.Constraint, "23514")
			if cents := bank.Balance(t, s, 0); cents != before+100 {
				t.Errorf("the statements were not torn apart: %d, then %d", before, cents)
			}
		})
	}
}
