package postgres

import (
	"strings"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestMonitorSamplesWorkAndReconnects checks that samples show the work of sessions and a waiting lock, and that a
// monitor reconnects after its connection was killed.
func TestMonitorSamplesWorkAndReconnects(t *testing.T) {
	d := openFresh(t)
	sqltest.Execute(t, d, "CREATE TABLE counter (id BIGINT PRIMARY KEY, n BIGINT)", "INSERT INTO counter VALUES (1, 0)")
	m := drivertest.Monitor(t, d)
	first, before := drivertest.Sampled(t, m)
	if !first.Fresh || first.Server == "" {
		t.Errorf("the first sample is %+v", first)
	}
	if again, _ := drivertest.Sampled(t, m); again.Fresh || again.Server != first.Server {
		t.Errorf("the second sample is %+v", again)
	}

	sqltest.WaitForRow(t, d, func() bool {
		_, now := drivertest.Sampled(t, m)
		return now["sessions_waiting_lock"] == 1 && now["sessions_idle_in_transaction"] == 1
	})

	// The server adds up the work of sessions when they are idle, at most once a second.
	grown := func() bool {
		_, now := drivertest.Sampled(t, m)
		return now["commits_per_s"] > before["commits_per_s"] && now["buffers_hit_per_s"] > before["buffers_hit_per_s"] &&
			now["wal_bytes_per_s"] > before["wal_bytes_per_s"]
	}
	for deadline := time.Now().Add(20 * time.Second); !grown(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was committed is not in the samples")
		}
	}

	sqltest.Execute(t, d, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if _, err := m.Sample(t.Context()); err == nil || db.ClassOf(err) == db.Fatal {
		t.Errorf("over a killed connection: %v", err)
	}
	if s, _ := drivertest.Sampled(t, m); !s.Fresh {
		t.Error("after it the counters count as the same")
	}
}

// TestMonitorQueriesMatchTheServerVersion checks that each version is asked for its own views.
func TestMonitorQueriesMatchTheServerVersion(t *testing.T) {
	for version, views := range map[int]string{13: "pg_stat_bgwriter", 14: "pg_stat_bgwriter pg_stat_wal", 16: "pg_stat_bgwriter pg_stat_wal", 17: "pg_stat_checkpointer pg_stat_wal", 18: "pg_stat_checkpointer pg_stat_io"} {
		var found []string
		for _, view := range []string{"pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal", "pg_stat_io"} {
			if strings.Contains(query(version), view) {
				found = append(found, view)
			}
		}
		if got := strings.Join(found, " "); got != views {
			t.Errorf("version %d is asked for %s, want %s", version, got, views)
		}
	}
	for text, want := range map[string]int{"15.18 (Debian 15.18-0+deb12u1)": 15, "18beta1": 18, "9.6": 9, "": 0} {
		if got := major(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}
