package host_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	postgres "stroppy/internal/cluster/postgres/server"
)

// steered is a node with its own clock.
type steered interface {
	cluster.LocalNode
	Steered() error
	Jump(ctx context.Context, by time.Duration) (heal func(context.Context) error, err error)
	Rate(ctx context.Context, factor float64) (heal func(context.Context) error, err error)
	Now(ctx context.Context) (time.Time, error)
}

// ahead returns how far the server's clock is ahead of the machine's, by its own answer.
func ahead(t *testing.T, n steered) time.Duration {
	t.Helper()
	return promptly(t, func() (time.Time, error) { return n.Now(t.Context()) })
}

// promptly returns how far the clock of now is ahead of the machine's. It repeats a query that takes long on a busy
// machine.
func promptly(t *testing.T, now func() (time.Time, error)) time.Duration {
	t.Helper()
	for range 200 {
		began := time.Now()
		read, err := now()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 200*time.Millisecond {
			return read.Sub(began.Add(took / 2).Round(0))
		}
	}
	t.Fatal("no question for the time was answered within 200 ms")
	return 0
}

// near compares values that may differ by the time of a query.
func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	const unsure = 500 * time.Millisecond
	if (got - want).Abs() > unsure {
		t.Errorf("%s: the clock is ahead by %v, want %v", what, got, want)
	}
}

// TestPostgresClockJumpsAndDrifts checks that the clock of a real server jumps and drifts, also for new sessions
// and after a restart. Time-outs last as long as before.
func TestPostgresClockJumpsAndDrifts(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	began := time.Now()
	c, err := postgres.StartCluster(t.Context(), cluster.Options{Nodes: 1, Loopback: true, InMemory: true, Clock: true})
	var missing host.MissingError
	if errors.As(err, &missing) {
		t.Skipf("skipped engine: postgres: install the Debian package %s", missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		clustertest.NoClockFiles(t, began)
	}()
	n := c.Nodes()[0].(steered)
	if err := n.Steered(); errors.As(err, &missing) {
		t.Skipf("skipped engine: faketime: install the Debian package %s", missing.Package)
	} else if err != nil {
		t.Fatal(err)
	}
	near(t, "at first", ahead(t, n), 0)
	for _, by := range []time.Duration{time.Hour, -time.Hour, 1500 * time.Millisecond} {
		heal, err := n.Jump(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "after a jump", ahead(t, n), by)
		near(t, "in a new session", aheadInSession(t, c, 300*time.Millisecond), by)
		if by == time.Hour {
			if err := errors.Join(n.Kill(t.Context()), n.Restart(t.Context())); err != nil {
				t.Fatal(err)
			}
			near(t, "after a restart", ahead(t, n), by)
		}
		if err := heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		near(t, "after the heal", ahead(t, n), 0)
	}
	for _, rate := range []float64{3, 0.25} {
		heal, err := n.Rate(t.Context(), rate)
		if err != nil {
			t.Fatal(err)
		}
		// The time until the server follows depends on the machine.
		began, start := time.Now(), ahead(t, n)
		if start.Abs() > 10*time.Second {
			t.Errorf("at the start of a drift: the clock is ahead by %v", start)
		}
		drift := func() time.Duration { return start + time.Duration((rate-1)*float64(time.Since(began))) }
		drifted := func(what string, ahead func() time.Duration) {
			t.Helper()
			before, got, after := drift(), ahead(), drift() // the answer is from some time between the two
			near(t, what, got, min(max(got, min(before, after)), max(before, after)))
		}
		time.Sleep(700 * time.Millisecond)
		drifted("in a drift", func() time.Duration { return ahead(t, n) })
		drifted("in a new session", func() time.Duration { return aheadInSession(t, c, 0) })
		if err := errors.Join(n.Kill(t.Context()), n.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		drifted("after a restart", func() time.Duration { return ahead(t, n) })
		if err := heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		near(t, "after the heal", ahead(t, n), 0)
	}
}

// aheadInSession asks in a session of its own, which first sleeps. It checks the duration of the sleep, because the
// monotonic clock must not change.
func aheadInSession(t *testing.T, c cluster.Local, sleep time.Duration) time.Duration {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	began := time.Now()
	if _, err := conn.Exec(t.Context(), "SELECT pg_sleep($1)", sleep.Seconds()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < sleep {
		t.Errorf("a sleep of %v took %v", sleep, took)
	}
	return promptly(t, func() (now time.Time, err error) {
		err = conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now)
		return now, err
	})
}

// TestUnchangeableClocksAreRejected checks that clocks that cannot be changed are rejected with the reason.
func TestUnchangeableClocksAreRejected(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	for want, o := range map[string]cluster.Options{
		"this kind of server cannot be asked": {Clock: true},
		"the machine's own clock":             {},
	} {
		o.Nodes, o.Loopback, o.InMemory = 1, true, true
		c, err := etcd.Start(t.Context(), o)
		var missing host.MissingError
		if errors.As(err, &missing) {
			t.Skipf("skipped engine: etcd: install the Debian package %s", missing.Package)
		}
		if err != nil {
			t.Fatal(err)
		}
		n := c.Nodes()[0].(steered)
		if err := n.Steered(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", o, err, want)
		}
		if _, err := n.Jump(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: a jump: %v, want %q in it", o, err, want)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(n.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after Stop: %v", err)
		}
	}
}
