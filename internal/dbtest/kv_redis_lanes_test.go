package dbtest

import (
	"slices"
	"strings"
	"testing"
)

// TestKVOnRedisLanes runs every kind of transaction, eight under way on one connection
// at a time, without replicas and with one that must acknowledge each commit.
func TestKVOnRedisLanes(t *testing.T) {
	for replicas, query := range []string{"?wait=0", "?wait=1"} {
		t.Run(query, func(t *testing.T) {
			s := startRedis(t, 1+replicas, map[string]string{"save": ""})
			code, v, why := kvOn(t, slices.Concat([]string{"--db", s.URL() + query, "--count", "8000", "--in-flight", "8"}, kvMix)...)
			v.wantValid(t, code, why)
		})
	}
	s := startRedis(t, 1, map[string]string{"save": ""})
	code, _, why := kvOn(t, "--db", s.URL()+"?commit=watch", "--in-flight", "8", "--records", "300", "--count", "100")
	if code != 3 || !strings.Contains(why, "take commit=script, or leave in-flight out") {
		t.Errorf("exit code %d: %s", code, why)
	}
}

// TestKVOnRedisLanesUnderNemesis kills a server that syncs its file before it answers,
// under transactions that travel together.
func TestKVOnRedisLanesUnderNemesis(t *testing.T) {
	code, v, why := kvOn(t, slices.Concat([]string{
		"--cluster", "redis:1?appendfsync=always&memory=on", "--nemesis", "kill primary at 2s for 1s", "--duration", "5s", "--in-flight", "8",
	}, kvMix)...)
	v.wantValid(t, code, why)
}
