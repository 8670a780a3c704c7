package etcd_test

import (
	"testing"
	"time"

	servers "stroppy/internal/cluster"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/kvtest"
)

// TestMonitorSamplesCommitsAndLostMembers checks that samples contain commits, that a lost member is missing, and
// that the metrics follow the leader.
func TestMonitorSamplesCommitsAndLostMembers(t *testing.T) {
	c := startCluster(t, 3, nil)
	d := drivertest.Open(t, etcd.Open, c.URL())
	m := drivertest.Monitor(t, d)
	first, before := drivertest.Sampled(t, m)
	for range 20 {
		kvtest.Put(t, d, "x", "y")
	}
	second, after := drivertest.Sampled(t, m)
	if !first.Fresh || second.Fresh || first.Server == "" || second.Server != first.Server || after["members_answering"] != 3 || after["raft_term"] < 1 {
		t.Errorf("the samples are %+v and %+v", first, second)
	}
	for _, name := range []string{"raft_entries_per_s", "wal_syncs_per_s"} {
		if grown := after[name] - before[name]; grown < 20 {
			t.Errorf("after 20 commits %s has grown by %v", name, grown)
		}
	}
	if after["wal_sync_seconds_per_s"] <= before["wal_sync_seconds_per_s"] || after["database_bytes"] < 1 {
		t.Errorf("the values are %v", after)
	}

	leader, err := c.Leader(t.Context())
	drivertest.Must(t, err)
	drivertest.Must(t, servers.LocalNodes(c)[leader].Kill(t.Context()))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		s, err := m.Sample(t.Context())
		if err == nil && s.Server != first.Server {
			if answering := s.Values[0]; answering != 2 || !s.Fresh {
				t.Errorf("without the first leader the sample is %+v", s)
			}
			break
		}
		if db.ClassOf(err) == db.Fatal && err != nil || time.Now().After(deadline) {
			t.Fatalf("the metrics do not follow the leader: %+v, %v", s, err)
		}
	}
}
