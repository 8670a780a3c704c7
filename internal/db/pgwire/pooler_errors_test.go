package pgwire

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgrescluster "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// pooled starts a pooler with settings before the shared server, and opens a new database with a table
// through it. The URL is the one without the pooler.
func pooled(t *testing.T, settings map[string]string) (url string, p *pgbouncer.Pooler, d *Database) {
	t.Helper()
	server, name, url := fresh(t)
	p = poolWith(t, server, settings)
	d = drivertest.Open(t, openURL, p.URL("anybody", name, ""))
	sqltest.Execute(t, drivertest.Open(t, openURL, url), "CREATE TABLE kept (id bigint PRIMARY KEY)")
	return url, p, d
}

var keep = &db.Statement{SQL: "INSERT INTO kept VALUES ($1)", Params: []db.Type{db.Integer}}

// begun returns an interactive transaction that has inserted a row and is not committed.
func begun(t *testing.T, d *Database, id int64) *session {
	t.Helper()
	s := newSession(t, d, db.Interactive, "")
	drivertest.Must(t, s.Begin(t.Context(), false))
	_, err := s.Do(t.Context(), keep, []db.Value{{Int: id}})
	drivertest.Must(t, err)
	return s
}

// whole sends a transaction in one round trip.
func whole(t *testing.T, s *session, id int64) error {
	t.Helper()
	drivertest.Must(t, s.Begin(t.Context(), false))
	if _, err := s.Do(t.Context(), keep, []db.Value{{Int: id}}); err != nil {
		return err
	}
	return s.Commit(t.Context())
}

// held reports whether the database has a row.
func held(t *testing.T, url, id string) bool {
	t.Helper()
	return query(t, url, "SELECT count(*)::text FROM kept WHERE id = "+id) == "1"
}

func query(t *testing.T, url, sql string) (text string) {
	t.Helper()
	d := drivertest.Open(t, openURL, url)
	err := d.Control(t.Context(), "ask the server", func(ctx context.Context, c *Control) error {
		row, err := c.Row(ctx, sql)
		if err == nil {
			text = row[0]
		}
		return err
	})
	drivertest.Must(t, err)
	return text
}

// TestPoolerIsDetected checks that nothing is left in sessions behind a pooler of any mode, and that the pooler is
// named with its settings.
func TestPoolerIsDetected(t *testing.T) {
	server := servers.Shared(t)
	for _, mode := range []string{"transaction", "session"} {
		d := drivertest.Open(t, openURL, poolWith(t, server, map[string]string{"pool_mode": mode}).URL("postgres", "postgres", ""))
		if !d.Pooled() || d.stateless == nil {
			t.Errorf("a pooler of mode %s was not seen", mode)
		}
		info, err := d.Info(t.Context())
		drivertest.Must(t, err)
		name := ""
		for _, s := range info.Settings {
			if s.Name == "pooler" {
				name = s.Value
			}
		}
		if !strings.Contains(name, "PgBouncer ") || !strings.Contains(name, "pool_mode "+mode) {
			t.Errorf("a pooler of mode %s is named %q", mode, name)
		}
	}
	if d := drivertest.Open(t, openURL, server.URL()); d.Pooled() || d.stateless != nil {
		t.Error("a pooler was seen before a server that has none")
	}
}

// TestPoolerWaitTimeoutAppliesNothing checks that a transaction that waited too long for a session of the pooler
// is not applied.
func TestPoolerWaitTimeoutAppliesNothing(t *testing.T) {
	url, _, d := pooled(t, map[string]string{"default_pool_size": "1", "query_wait_timeout": "1"})
	waits := newSession(t, d, db.Pipelined, "")
	drivertest.Must(t, whole(t, waits, 1)) // its statement is described now
	holder := begun(t, d, 2)
	err := whole(t, waits, 3)
	sqltest.WantError(t, "a transaction that waits for the only session", err, db.Unavailable, "08P01")
	if !strings.Contains(err.Error(), "query_wait_timeout: raise PgBouncer's default_pool_size") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	drivertest.Must(t, holder.Commit(t.Context()))
	if !held(t, url, "2") || held(t, url, "3") {
		t.Error("the server has not the transactions that it was sent")
	}
	drivertest.Must(t, waits.Reset(t.Context()))
	drivertest.Must(t, whole(t, waits, 4))
}

// TestClientAbovePoolerLimitConnectsLater checks that a client above the limit can connect later.
func TestClientAbovePoolerLimitConnectsLater(t *testing.T) {
	_, _, d := pooled(t, map[string]string{"max_client_conn": "2"})
	newSession(t, d, db.Pipelined, "")
	newSession(t, d, db.Pipelined, "")
	_, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Pipelined})
	sqltest.WantError(t, "a client too many", err, db.Unavailable, "08P01")
	if !strings.Contains(err.Error(), "no more connections allowed (max_client_conn): take fewer clients, or raise PgBouncer's max_client_conn") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// TestPoolerIdleTimeoutLosesNothing checks that nothing is lost when the pooler ends an idle connection.
func TestPoolerIdleTimeoutLosesNothing(t *testing.T) {
	url, _, d := pooled(t, map[string]string{"client_idle_timeout": "1"})
	s := newSession(t, d, db.Pipelined, "")
	drivertest.Must(t, whole(t, s, 1))
	time.Sleep(3 * time.Second)
	err := whole(t, s, 2)
	if db.ClassOf(err) != db.Unavailable || held(t, url, "2") {
		t.Errorf("a transaction after the pooler had ended the connection: %v", err)
	}
}

// TestTerminatedSessionBehindPoolerRollsBack checks that the end of the server's session rolls back its
// transaction and that the client can continue.
func TestTerminatedSessionBehindPoolerRollsBack(t *testing.T) {
	url, _, d := pooled(t, nil)
	s := begun(t, d, 1)
	query(t, url, "SELECT bool_or(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()")
	err := s.Commit(t.Context())
	// The client may or may not notice the end of the connection before it sends the commit.
	if class := db.ClassOf(err); class != db.Unknown && class != db.Unavailable {
		t.Errorf("the commit is %v: %v", class, err)
	}
	drivertest.Must(t, s.Reset(t.Context()))
	again := begun(t, d, 2)
	query(t, url, "SELECT bool_or(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()")
	_, err = again.Do(t.Context(), keep, []db.Value{{Int: 3}})
	if class := db.ClassOf(err); class != db.Unavailable {
		t.Errorf("a statement before the commit is %v: %v", class, err)
	}
	if held(t, url, "1") || held(t, url, "2") {
		t.Error("the server has what it rolled back")
	}
}

// TestPoolerKilledDuringCommitIsUnknown checks that a commit whose answer was lost in the pooler is unknown. The
// server's answer waits for a lock of another session.
func TestPoolerKilledDuringCommitIsUnknown(t *testing.T) {
	url, p, d := pooled(t, nil)
	s := newSession(t, d, db.Pipelined, "")
	drivertest.Must(t, whole(t, s, 1))
	blocker := begun(t, drivertest.Open(t, openURL, url), 2)
	ended := make(chan error, 1)
	go func() {
		_ = s.Begin(t.Context(), false)
		_, err := s.Do(t.Context(), keep, []db.Value{{Int: 2}})
		if err == nil {
			err = s.Commit(t.Context())
		}
		ended <- err
	}()
	deadline := time.Now().Add(10 * time.Second)
	for query(t, url, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") != "1" {
		if time.Now().After(deadline) {
			t.Fatal("the transaction did not come to the server")
		}
	}
	drivertest.Must(t, syscall.Kill(p.PIDs()[0], syscall.SIGKILL))
	if err := <-ended; db.ClassOf(err) != db.Unknown {
		t.Errorf("a commit whose answer was lost is %v: %v", db.ClassOf(err), err)
	}
	drivertest.Must(t, blocker.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	drivertest.Must(t, wait.Retry(ctx, func() error {
		if p.Running() { // and would not be started again
			return errors.New("the killed pooler has not ended")
		}
		return nil
	}))
	drivertest.Must(t, p.Restart(ctx))
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, whole(t, s, 4))
}

// TestPoolerRefusesUnknownDatabase checks that a database unknown to the pooler is a fatal error.
func TestPoolerRefusesUnknownDatabase(t *testing.T) {
	p := poolWith(t, servers.Shared(t), nil)
	_, err := openURL(t.Context(), p.URL("anybody", "nowhere", ""))
	sqltest.WantError(t, "a database that is not there", err, db.Fatal, "08P01")
}

// TestStatementPoolingIsRefused checks that a pooler that assigns sessions to single statements is refused.
func TestStatementPoolingIsRefused(t *testing.T) {
	_, _, d := pooled(t, map[string]string{"pool_mode": "statement"})
	s := newSession(t, d, db.Interactive, "")
	drivertest.Must(t, s.Begin(t.Context(), false))
	_, err := s.Do(t.Context(), keep, []db.Value{{Int: 1}})
	sqltest.WantError(t, "a transaction of several statements", err, db.Unavailable, "08P01")
	if !strings.Contains(err.Error(), "statement pooling mode: set PgBouncer's pool_mode to transaction or session") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// poolWith starts a pooler before a server.
func poolWith(t *testing.T, s *postgrescluster.Server, settings map[string]string) *pgbouncer.Pooler {
	t.Helper()
	server := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(s.Port()))
	p, err := pgbouncer.Start(t.Context(), server, postgrescluster.Superuser, settings)
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: pgbouncer: install the Debian package " + missing.Package)
	}
	drivertest.Must(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}
