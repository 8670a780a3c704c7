package cockroach

import (
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// When a cutter ends the connections that go through it.
const (
	never         int32 = iota
	beforeRequest       // with the next request of a client, which the server does not get
	withRequest         // right after the server got the next request
	beforeAnswer        // with the next answer of the server, which the client does not get
)

// cutter stands between clients and a server.
type cutter struct{ when atomic.Int32 }

// stand returns the URL at which the cutter passes on to the server at a URL.
func (c *cutter) stand(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	drivertest.Must(t, err)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	t.Cleanup(func() { l.Close() })
	host := u.Host
	u.Host = l.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("tcp4", host)
			if err != nil {
				client.Close()
				return
			}
			go c.pass(client, backend, beforeRequest, withRequest)
			go c.pass(backend, client, beforeAnswer, -1)
		}
	}()
	return u.String()
}

// pass passes on what one side says, until it is cut.
func (c *cutter) pass(from, to net.Conn, before, after int32) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || c.when.Load() == before {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil || c.when.Load() == after {
			return
		}
	}
}

// TestCutAtCommit: a connection that ends while COMMIT is under way leaves the outcome
// unknown, whether the server got the COMMIT or not; one that ends before is surely not
// applied.
func TestCutAtCommit(t *testing.T) {
	address := freshURL(t)
	direct := drivertest.Open(t, Open, address)
	bank.Make(t, direct, 2)
	observer := sqltest.Session(t, direct, db.Pipelined, "")
	var c cutter
	d := drivertest.Open(t, Open, c.stand(t, address))
	ctx := t.Context()
	for _, together := range []bool{false, true} {
		for when, moved := range map[int32][]int64{beforeRequest: {0}, withRequest: {0, 1}, beforeAnswer: {1}} {
			t.Run(fmt.Sprintf("together %v, %d", together, when), func(t *testing.T) {
				s := sqltest.Session(t, d, db.Pipelined, "")
				drivertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(1, 1))) // prepares
				before := bank.Balance(t, observer, 0)
				drivertest.Must(t, s.Begin(ctx, false))
				touch := bank.Touch(0, 1)
				_, err := s.Do(ctx, touch.S, touch.Args)
				if err == nil && !together {
					err = s.Flush(ctx)
				}
				drivertest.Must(t, err)
				c.when.Store(when)
				err = s.Commit(ctx)
				c.when.Store(never)
				sqltest.WantError(t, "COMMIT", err, db.Unknown, "")
				sqltest.WantError(t, "a broken session", s.Begin(ctx, false), db.Unavailable, "")
				// A write of the same row waits for the transaction that was cut, if it is there yet.
				drivertest.Must(t, sqltest.Transact(ctx, observer, false, false, bank.Touch(0, 0)))
				after := bank.Balance(t, observer, 0)
				found := false
				for _, m := range moved {
					found = found || after == before+m
				}
				if !found {
					t.Errorf("the balance was %d and is %d, want %v more", before, after, moved)
				}
				drivertest.Must(t, s.Reset(ctx))
				drivertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(1, 1)))
			})
		}
	}
	t.Run("before COMMIT", func(t *testing.T) {
		s := sqltest.Session(t, d, db.Interactive, "")
		before := bank.Balance(t, s, 0)
		drivertest.Must(t, s.Begin(ctx, false))
		touch := bank.Touch(0, 1)
		_, err := sqltest.Do(ctx, s, touch)
		drivertest.Must(t, err)
		c.when.Store(beforeAnswer)
		_, err = s.Do(ctx, touch.S, touch.Args)
		c.when.Store(never)
		sqltest.WantError(t, "a statement", err, db.Unavailable, "")
		if after := bank.Balance(t, observer, 0); after != before {
			t.Errorf("the balance was %d and is %d", before, after)
		}
	})
}
