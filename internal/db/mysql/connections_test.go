package mysql

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestOpenSessionsReduceFreeConnections checks that the tightest limit for a user is found, and that open sessions
// reduce the free connections.
func TestOpenSessionsReduceFreeConnections(t *testing.T) {
	server := start(t, map[string]string{"max-connections": "60", "max-user-connections": "30"})
	for _, sql := range []string{
		"CREATE USER teller IDENTIFIED BY 'x'", "CREATE USER narrow IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 4",
		"GRANT ALL ON test.* TO teller", "GRANT ALL ON test.* TO narrow",
	} {
		if _, err := server.SQL(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(user, password string) (*Database, func() db.FreeConnections) {
		d := drivertest.Open(t, Open, server.URLFor(user, password, "test"))
		return d, func() db.FreeConnections {
			t.Helper()
			free, err := d.FreeConnections(t.Context())
			if err != nil || !free.Known {
				t.Fatalf("%s: %+v, %v", user, free, err)
			}
			return free
		}
	}
	// A connection that ended may still be counted for a moment.
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("not so: %s", what)
				return
			}
		}
	}
	root, asRoot := ask(mysqlcluster.Superuser, "")
	eventually("an administrator is bound by max_connections alone", func() bool {
		free := asRoot()
		return free.Count == 60 && free.Limit == "max_connections = 60"
	})
	for range 20 {
		sqltest.Session(t, root, db.Interactive, "")
	}
	eventually("20 sessions take as many connections", func() bool { return asRoot().Count == 40 })
	teller, asTeller := ask("teller", "x")
	sqltest.Session(t, teller, db.Interactive, "")
	eventually("a user is bound by the server's max_user_connections", func() bool {
		free := asTeller()
		return free.Count == 29 && free.Limit == "max_user_connections = 30"
	})
	narrow, asNarrow := ask("narrow", "x")
	sqltest.Session(t, narrow, db.Interactive, "")
	eventually("an account is bound by its own limit", func() bool {
		free := asNarrow()
		return free.Count == 3 && free.Limit == "max_user_connections = 4"
	})
}

// TestFreeConnectionsAreUnknownBehindProxy checks that free connections are unknown behind a proxy with its own
// connection numbers. Behind a transparent proxy, the server's figures hold.
func TestFreeConnectionsAreUnknownBehindProxy(t *testing.T) {
	server := start(t, nil)
	for _, renumber := range []bool{false, true} {
		url := drivertest.Relay(t, server.URL(), func(client, backend net.Conn) {
			go func() {
				_, _ = io.Copy(backend, client)
				backend.Close()
			}()
			first := make([]byte, 1024)
			n, err := backend.Read(first)
			if err != nil {
				return
			}
			if end := 5 + bytes.IndexByte(first[5:n], 0); renumber {
				first[end+3]++ // of the number of the connection
			}
			if _, err := client.Write(first[:n]); err != nil {
				return
			}
			_, _ = io.Copy(client, backend)
		})
		d := drivertest.Open(t, Open, url)
		if free, err := d.FreeConnections(t.Context()); err != nil || free.Known == renumber {
			t.Errorf("behind a proxy that numbers connections (%v): %+v, %v", renumber, free, err)
		}
	}
}
