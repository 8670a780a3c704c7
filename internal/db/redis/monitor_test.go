package redis_test

import (
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/redis"
)

// TestMonitorFollowsThePrimary checks that samples show the work of sessions, and that a monitor follows the
// primary. A user without permission gets a lasting error.
func TestMonitorFollowsThePrimary(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL())
	m := drivertest.Monitor(t, d)
	first, before := drivertest.Sampled(t, m)
	for range 20 {
		run(t, c, "set", "x", "y")
	}
	second, after := drivertest.Sampled(t, m)
	if !first.Fresh || second.Fresh || first.Server == "" || second.Server != first.Server {
		t.Errorf("the samples are %+v and %+v", first, second)
	}
	if grown := after["commands_per_s"] - before["commands_per_s"]; grown < 20 || after["connected_clients"] < 1 || after["used_memory_bytes"] < 1e5 {
		t.Errorf("after 20 commands there are %v more: %v", grown, after)
	}

	run(t, c, "client", "kill", "type", "normal", "skipme", "yes")
	if _, err := m.Sample(t.Context()); err == nil || db.ClassOf(err) == db.Fatal {
		t.Errorf("over a killed connection: %v", err)
	}
	if s, _ := drivertest.Sampled(t, m); !s.Fresh {
		t.Error("after it the counters count as the same")
	}

	run(t, c, "acl", "setuser", "default", "-info")
	_, err := m.Sample(t.Context())
	expect(t, "a question that is refused", err, db.Fatal, "info")
}
