package postgres

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/pgbouncer"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestOpenSessionsReduceFreeConnections checks that a superuser, and a user who does not see other sessions, find
// the tightest limit. Open sessions must reduce it.
func TestOpenSessionsReduceFreeConnections(t *testing.T) {
	const most, reserved = 60, 3
	pg := servers.Start(t, map[string]string{"max_connections": "60", "max_worker_processes": "2", "max_wal_senders": "3"})
	super := drivertest.Open(t, Open, pg.URL())
	sqltest.Execute(t, super,
		"CREATE ROLE teller LOGIN PASSWORD 'x'", "CREATE ROLE narrow LOGIN PASSWORD 'x' CONNECTION LIMIT 4",
		"CREATE DATABASE small CONNECTION LIMIT 5")
	as := func(user, database string) *Database {
		return drivertest.Open(t, Open, pg.URLFor(user, "x", database))
	}
	ask := func(d *Database) db.FreeConnections {
		t.Helper()
		free, err := d.FreeConnections(t.Context())
		if err != nil || !free.Known || free.Server != d.Location() {
			t.Fatalf("%+v, %v", free, err)
		}
		return free
	}
	// The server counts a connection for a moment after its end.
	count := func(d *Database) db.FreeConnections {
		t.Helper()
		for last, same := ask(d), 0; ; {
			time.Sleep(50 * time.Millisecond)
			free := ask(d)
			if same++; free.Count != last.Count {
				last, same = free, 0
			}
			if same == 5 {
				return free
			}
		}
	}
	before := count(super)
	others := most - before.Count // of who watches the server
	if before.Limit != "max_connections = 60" || others < 0 || others > 5 {
		t.Fatalf("%+v", before)
	}
	for range 20 {
		sqltest.Session(t, super, db.Interactive, "")
	}
	if after := count(super); after.Count != before.Count-20 {
		t.Errorf("with 20 sessions more %d are free, before them %d", after.Count, before.Count)
	}
	teller := as("teller", "postgres")
	// Up to five of the invisible processes may not be clients.
	hidden := max(0, 20+others-5)
	if free := count(teller); free.Count != most-reserved-hidden || free.Limit != "max_connections = 60, 3 of them reserved" {
		t.Errorf("a user has %+v", free)
	}
	sqltest.Execute(t, super, "GRANT pg_read_all_stats TO teller")
	if free := count(teller); free.Count != before.Count-20-reserved {
		t.Errorf("a user who sees all has %+v", free)
	}
	narrow := as("narrow", "postgres")
	sqltest.Session(t, narrow, db.Interactive, "")
	if free := count(narrow); free.Count != 3 || free.Limit != "the role's CONNECTION LIMIT is 4" {
		t.Errorf("a role with a limit has %+v", free)
	}
	small := as("teller", "small")
	sqltest.Session(t, small, db.Interactive, "")
	if free := count(small); free.Count != 4 || free.Limit != "the database's CONNECTION LIMIT is 5" {
		t.Errorf("a database with a limit has %+v", free)
	}
	if free := count(as(server.Superuser, "small")); free.Limit != "max_connections = 60" {
		t.Errorf("a superuser has %+v", free)
	}
}

// TestFreeConnectionsAreUnknownBehindPooler checks that the number of free connections is unknown behind a pooler.
func TestFreeConnectionsAreUnknownBehindPooler(t *testing.T) {
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(servers.Shared(t).Port()))
	for _, mode := range []string{"transaction", "session"} {
		p, err := pgbouncer.Start(t.Context(), at, server.Superuser, map[string]string{"pool_mode": mode})
		if missing := (host.MissingError{}); errors.As(err, &missing) {
			t.Skip("skipped engine: pgbouncer: install the Debian package " + missing.Package)
		}
		drivertest.Must(t, err)
		t.Cleanup(func() { drivertest.Must(t, p.Stop()) })
		d := drivertest.Open(t, Open, p.URL("anybody", "postgres", "prepare=false"))
		if free, err := d.FreeConnections(t.Context()); err != nil || free.Known {
			t.Errorf("behind a pooler of mode %s: %+v, %v", mode, free, err)
		}
	}
}

// TestServerShowsTheApplicationName checks that connections show this program's name on the server, or the name in
// the URL.
func TestServerShowsTheApplicationName(t *testing.T) {
	address := servers.Shared(t).URL()
	for query, want := range map[string]string{"": "stroppy", "&application_name=teller": "teller"} {
		s := sqltest.Session(t, drivertest.Open(t, Open, address+query), db.Interactive, "")
		var name string
		err := s.Query(t.Context(), &db.Statement{SQL: "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()", Columns: []db.Type{db.Text}}, nil, func(row []db.Value) error {
			name = string(row[0].Text)
			return nil
		})
		if err != nil || name != want {
			t.Errorf("with %q it is %q, %v", query, name, err)
		}
	}
}
