package mysql

import (
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestMonitorSamplesWorkAndReconnects checks that samples show the work of sessions and a waiting lock, and that a
// monitor reconnects after its connection was killed.
func TestMonitorSamplesWorkAndReconnects(t *testing.T) {
	d := openFresh(t)
	sqltest.Execute(t, d, "CREATE TABLE counter (id BIGINT PRIMARY KEY, n BIGINT) ENGINE=InnoDB", "INSERT INTO counter VALUES (1, 0)")
	m := drivertest.Monitor(t, d)
	first, before := drivertest.Sampled(t, m)
	if !first.Fresh || first.Server == "" {
		t.Errorf("the first sample is %+v", first)
	}
	for _, name := range []string{"galera_receive_queue", "galera_paused_ns_per_s"} {
		if _, there := before[name]; there {
			t.Errorf("a server without Galera has %s", name)
		}
	}
	sqltest.WaitForRow(t, d, func() bool {
		s, now := drivertest.Sampled(t, m)
		return now["row_lock_waiting"] >= 1 && now["threads_running"] >= 1 && !s.Fresh
	})
	_, after := drivertest.Sampled(t, m)
	for _, name := range []string{"row_lock_waits_per_s", "commits_per_s", "redo_bytes_per_s", "pages_requested_per_s"} {
		if after[name] <= before[name] {
			t.Errorf("%s was %v and is %v", name, before[name], after[name])
		}
	}

	m.(*monitor).link.drop()
	if _, err := m.Sample(t.Context()); err == nil || db.ClassOf(err) == db.Fatal {
		t.Errorf("over a lost connection: %v", err)
	}
	if s, _ := drivertest.Sampled(t, m); !s.Fresh {
		t.Error("after it the counters count as the same")
	}
}
