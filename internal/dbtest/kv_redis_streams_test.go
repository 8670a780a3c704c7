package dbtest

import (
	"slices"
	"strings"
	"testing"
)

// TestKVRefusesSharedRedisConnectionsWithWatch checks the refusal of several transactions on one connection if they
// use WATCH.
func TestKVRefusesSharedRedisConnectionsWithWatch(t *testing.T) {
	t.Parallel()
	s := startRedis(t, 1, "no")
	code, _, why := program(t, "kv", "--db", s.URL()+"?commit=watch", "--in-flight", "8", "--records", "300", "--count", "100")
	if code != 3 || !strings.Contains(why, "take commit=script, or leave in-flight out") {
		t.Errorf("exit code %d: %s", code, why)
	}
}

// TestKVOnSharedRedisConnectionsSurvivesKill kills a server that syncs its file before each answer, while transactions
// share connections.
func TestKVOnSharedRedisConnectionsSurvivesKill(t *testing.T) {
	t.Parallel()
	needsTime(t)
	code, v, why := program(t, "kv", slices.Concat([]string{
		"--cluster", "redis:1?appendfsync=always&memory=on", "--nemesis", "kill primary at 2s for 1s", "--duration", "5s", "--in-flight", "8",
	}, kvMix)...)
	v.wantKV(t, code, why)
}
