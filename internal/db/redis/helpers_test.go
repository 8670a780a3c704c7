package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// start starts servers in memory. They have no snapshots, unless the options set them.
func start(t testing.TB, o serverOptions) *servers {
	t.Helper()
	o.Nodes = max(o.Nodes, 1)
	o.InMemory = o.Dir == ""
	settings := map[string]string{"save": ""}
	for name, value := range o.Settings {
		settings[name] = value
	}
	o.Settings = settings
	return startRaw(t, o)
}

// startRaw starts servers with exactly the settings of the options.
func startRaw(t testing.TB, o serverOptions) *servers {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	c, err := startServers(within(t, time.Minute), o)
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skip("skipped engine: redis: install the Debian package " + missing.Package)
	}
	drivertest.Must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func run(t testing.TB, c *servers, words ...string) string {
	t.Helper()
	return answer(t, c, 0, words...)
}

// answer runs a command on one of the servers.
func answer(t testing.TB, c *servers, i int, words ...string) string {
	t.Helper()
	text, err := c.Command(within(t, 10*time.Second), i, words...)
	drivertest.Must(t, err)
	return text
}

func newSession(t testing.TB, d *redis.Database) db.KVSession {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ways runs a test for both ways of committing. Each has its own database of one server.
func ways(t *testing.T, o serverOptions, test func(t *testing.T, c *servers, url string)) {
	c := start(t, o)
	for i, way := range []string{"script", "watch"} {
		t.Run(way, func(t *testing.T) {
			test(t, c, strings.TrimSuffix(c.URL(), "0")+[]string{"1", "2"}[i]+"?commit="+way)
		})
	}
}

// read returns the values as text. An absent key is "-".
func read(t testing.TB, s db.KVSession, names ...string) string {
	t.Helper()
	return strings.Join(kvtest.Values(t, s, names...), " ")
}

// expect fails the test unless err has the class and contains the words.
func expect(t testing.TB, what string, err error, class db.Class, words ...string) {
	t.Helper()
	if err == nil || db.ClassOf(err) != class {
		t.Errorf("%s gives %v, of class %v, want class %v", what, err, db.ClassOf(err), class)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s gives %v, which does not say %q", what, err, w)
		}
	}
}

// scan returns the entries as key=value.
func scan(t testing.TB, s db.KVSession, from, to string) (found []string) {
	t.Helper()
	drivertest.Must(t, s.Scan(t.Context(), []byte(from), []byte(to), func(key, value []byte) error {
		found = append(found, string(key)+"="+string(value))
		return nil
	}))
	return found
}
