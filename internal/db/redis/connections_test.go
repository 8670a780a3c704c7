package redis_test

import (
	"io"
	"net"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/redis"
)

// TestOpenSessionsReduceFreeConnections checks that maxclients limits free connections, that open sessions reduce
// them, and that they are unknown behind a proxy.
func TestOpenSessionsReduceFreeConnections(t *testing.T) {
	c := start(t, serverOptions{Settings: map[string]string{"maxclients": "50"}})
	d := drivertest.Open(t, redis.Open, c.URL())
	ask := func() db.FreeConnections {
		t.Helper()
		free, err := d.FreeConnections(t.Context())
		if err != nil || !free.Known || free.Limit != "maxclients = 50" {
			t.Fatalf("%+v, %v", free, err)
		}
		return free
	}
	before := ask()
	if before.Count < 45 || before.Count > 50 {
		t.Fatalf("of 50 connections %d are free", before.Count)
	}
	for range 10 {
		s, err := d.KVSession(t.Context(), db.SessionOptions{})
		drivertest.Must(t, err)
		defer drivertest.Close(t, s)
	}
	if after := ask(); after.Count > before.Count-10 || after.Count < before.Count-12 {
		t.Errorf("with 10 sessions more %d are free, before them %d", after.Count, before.Count)
	}
	proxied := drivertest.Open(t, redis.Open, drivertest.Relay(t, c.URL(), func(client, backend net.Conn) {
		go func() {
			_, _ = io.Copy(backend, client)
			backend.Close()
		}()
		_, _ = io.Copy(client, backend)
	}))
	if free, err := proxied.FreeConnections(t.Context()); err != nil || free.Known {
		t.Errorf("behind a proxy: %+v, %v", free, err)
	}
}
