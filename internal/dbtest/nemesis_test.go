package dbtest

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/fault"
	"stroppy/internal/report"
)

// faultyRun is a run with faults on its own cluster, with the expected verdict. The clients follow a rate unless args
// change it, because a closed loop would use the whole machine during the run.
type faultyRun struct {
	name     string
	cluster  string
	workload string // empty: bank
	faults   []string
	args     []string
	outage   bool // one of the faults must stop all commits for a while
	code     int
	invalid  string // the check that must be invalid
	by       string // start of the setting that names the failover mechanism; the first fault must move the lead
	apart    bool   // skipped by default, because other tests cover the faults
}

// faultyRate is high enough that a fault interrupts many transactions.
const faultyRate = "60"

// faultyRuns returns runs that differ from the files in scenarios/, because other tests run these.
func faultyRuns() []faultyRun {
	return []faultyRun{
		{
			// Scenarios already kill and pause a leader and replace a node.
			name: "etcd: partition, halves", cluster: "etcd:3?memory=on",
			faults: []string{"cycle every 6s for 2s: partition leader | partition halves"},
			args:   []string{"--duration", "16s"},
			outage: true,
		},
		{
			name: "CockroachDB: kill, partition, replace", cluster: "cockroach:3?memory=on&election_ticks=6",
			faults: []string{"kill random at 3s for 3s", "partition n1 at 16s for 4s", "replace n2 at 30s"},
			args:   []string{"--duration", "40s"},
		},
		{
			name: "FoundationDB: kill, partition, pause, replace", cluster: "fdb:3?memory=on&knobs=test",
			faults: []string{"kill leader at 3s for 3s", "partition random at 18s for 4s", "pause random at 34s for 4s", "replace n2 at 50s"},
			args:   []string{"--duration", "60s"},
		},
		{
			// Only one node may be missing. The heartbeat is long, so that healthy nodes on a busy machine do not give
			// each other up. The pause is shorter than the heartbeat. A node has time to rejoin before the next fault,
			// and no fault chooses a node while another is missing.
			name: "VoltDB: kill, pause, partition, replace", cluster: "voltdb:3?memory=on&heartbeat=12s",
			faults: []string{"kill random at 3s for 2s", "pause random at 25s for 3s", "partition random at 45s for 16s", "replace random at 95s"},
			args:   []string{"--duration", "105s"},
		},
		{
			// Without a command log the data is only in the memory of the nodes.
			name: "VoltDB: all nodes killed at once", cluster: "voltdb:3?memory=on",
			faults: []string{"kill all at 3s for 500ms"},
			args:   []string{"--duration", "12s"},
			code:   1, invalid: "durable",
			outage: true,
		},
		{
			name: "MongoDB: kill, partition, pause, replace", cluster: "mongodb:3?memory=on&election_timeout=2s",
			faults: []string{"cycle every 9s for 3s: kill leader | partition leader | pause leader | replace random"},
			args:   []string{"--duration", "42s"},
			outage: true,
		},
		{
			name: "MongoDB acknowledges by the primary alone, which is cut off", cluster: "mongodb:3?memory=on&w=1",
			faults: []string{"partition leader at 3s for 6s"},
			args:   []string{"--duration", "14s"},
			code:   1, invalid: "durable",
		},
		{
			name: "two shards of MongoDB: kill, partition, replace", cluster: "mongodb:3?memory=on&shards=2&election_timeout=2s",
			faults: []string{"kill leader at 4s for 4s", "partition n3 at 18s for 4s", "replace n1 at 30s"},
			args:   []string{"--duration", "42s", "--rate", "40"},
		},
		{
			// Each shard is read at a different time.
			name: "two shards of MongoDB read without a snapshot", cluster: "mongodb:1?memory=on&shards=2&readConcernLevel=local",
			args: []string{"--duration", "10s", "--rate", "0", "--audits", "10", "--expect", "snapshot-isolation"},
			code: 1, invalid: "audits",
		},
		{
			// All data is in memory, including users and schema.
			name: "InfiniSQL: kill -9 and restart", cluster: "infinisql:1?memory=on", workload: "tpcb",
			faults: []string{"kill n0 at 3s for 500ms"},
			args:   []string{"--duration", "8s", "--scale", "1", "--ratio", "100:100:1000"},
			code:   1, invalid: "durable",
			outage: true,
		},
		{
			name: "synchronous PostgreSQL: kill the primary, pause the standby, partition", cluster: "postgres:2?memory=on",
			faults: []string{"kill primary at 3s for 4s", "pause standby at 12s for 3s", "partition standby at 18s for 3s"},
			args:   []string{"--duration", "25s", "--isolation", "repeatable read"},
			outage: true,
		},
		{
			name: "PostgreSQL alone: kill -9 and restart", cluster: "postgres:1?memory=on",
			faults: []string{"kill n0 every 4s for 500ms"},
			args:   []string{"--duration", "10s"},
			outage: true,
		},
		{
			name: "PostgreSQL loses power", cluster: "postgres:1",
			faults: []string{"lose-unsynced n0 at 4s for 2s"},
			args:   []string{"--duration", "10s"},
			outage: true,
		},
		{
			// A read-only transaction may see commits that a power failure takes back: see docs/databases/mysql.md.
			name: "MariaDB loses power", cluster: "mariadb:1",
			faults: []string{"lose-unsynced n0 at 4s for 2s"},
			args:   []string{"--duration", "10s", "--audits", "0", "--read-only-share", "0"},
			outage: true,
		},
		{
			name: "MariaDB without a flush at commit loses power", cluster: "mariadb:1?flush=0",
			faults: []string{"lose-unsynced n0 at 4s for 2s"},
			args:   []string{"--duration", "10s"},
			code:   1, invalid: "durable",
			outage: true,
		},
		{
			name: "lists on etcd: kill, partition, pause", cluster: "etcd:3?memory=on", workload: "append",
			faults: []string{"cycle every 5s for 2s: kill leader | partition leader | pause leader"},
			args:   []string{"--duration", "17s"},
			outage: true,
		},
		{
			name: "lists on Redis: the replica cut off, the primary killed, the replica promoted", cluster: "redis:2?memory=on", workload: "append",
			faults: []string{"partition follower at 2s for 5s", "kill primary at 4s for 10s"},
			args:   []string{"--duration", "16s"},
			code:   1, invalid: "durable",
			outage: true,
		},
		{
			name: "events on etcd: kill the leader", cluster: "etcd:3?memory=on", workload: "events",
			faults: []string{"kill leader at 1s for 2s"},
			args:   []string{"--duration", "5s", "--batch", "3", "--retries", "100"},
		},
		{
			name: "events on synchronous PostgreSQL: kill the primary", cluster: "postgres:2?memory=on", workload: "events",
			faults: []string{"kill primary at 1s for 3s"},
			args:   []string{"--duration", "10s", "--streams", "3", "--batch", "2", "--retries", "100"},
		},
		{
			name: "events on Redis: the replica cut off, the primary killed, the replica promoted", cluster: "redis:2?memory=on",
			workload: "events",
			faults:   []string{"partition follower at 1s for 4s", "kill primary at 3s for 10s"},
			args:     []string{"--duration", "15s", "--retries", "100"}, code: 1, invalid: "durable",
		},
		{
			// The tests of the cluster inject the same faults, and TestFailOverKeepsAcknowledgedCommits kills a node
			// during commits.
			name: "Galera: kill, partition", cluster: "galera:3?memory=on", apart: true,
			faults: []string{"kill random at 4s for 4s", "partition n1 at 22s for 4s"},
			args:   []string{"--duration", "34s"},
		},
	}
}

// TestFaultyClustersGetExpectedVerdict runs the program on real clusters that it starts, disturbs and removes.
func TestFaultyClustersGetExpectedVerdict(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, h := range faultyRuns() {
		if h.apart && os.Getenv(allFaults) == "" {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.run(t)
		})
	}
}

// run runs the command and checks exit code, faults, verdict and failover.
func (h faultyRun) run(t *testing.T) {
	args := []string{"--cluster", h.cluster, "--clients", "8", "--seed", "7", "--rate", faultyRate}
	if h.workload == "" {
		args = append(args, "--accounts", "500")
	}
	for _, f := range h.faults {
		args = append(args, "--nemesis", f)
	}
	code, r, complaints := program(t, cmp.Or(h.workload, "bank"), append(args, h.args...)...)
	for _, f := range r.Faults {
		text, _ := json.Marshal(f)
		t.Logf("%s", text)
	}
	if code != h.code {
		t.Errorf("exit code %d, not %d: %s", code, h.code, complaints)
	}
	for _, c := range r.Checks {
		t.Logf("%s is %s (required %v): %s", c.Name, c.Status, c.Required, c.Detail)
		// All faults must be injected and healed, whatever the verdict.
		if c.Name == "faults" && c.Status != "valid" {
			t.Errorf("the faults: %s", c.Detail)
		}
	}
	if code == 0 && r.Verdict == "valid" {
		var faults []string
		for _, f := range r.Faults {
			faults = append(faults, f.Fault)
		}
		verified(t, r.Database, r.DatabaseVersion, r.Workload, faults...)
	}
	if h.invalid != "" && r.status(h.invalid) != "invalid" {
		t.Errorf("check %s is %s", h.invalid, r.status(h.invalid))
	}
	if h.by != "" {
		h.wantFailOver(t, &r.Result)
	}
	if h.outage && !slices.ContainsFunc(r.Faults, stopped) {
		t.Errorf("no fault has stopped the commits: %+v", r.Faults)
	}
}

// wantFailOver fails the test unless the expected mechanism has moved the lead to another node.
func (h faultyRun) wantFailOver(t *testing.T, r *report.Result) {
	t.Helper()
	by := ""
	for _, s := range r.Settings {
		if s.Name == report.FailoverSetting {
			by = s.Value
		}
	}
	if !strings.HasPrefix(by, h.by+" ") {
		t.Errorf("the failover mechanism is %q, want %s", by, h.by)
	}
	if len(r.Faults) == 0 {
		t.Fatal("there was no fault")
	}
	hurt, _, _ := strings.Cut(r.Faults[0].Target, " ") // the role follows in brackets
	if leads := r.Faults[0].OutageLeader; leads == "" || leads == hurt {
		t.Errorf("after %s of %s the leader is %q, want another node", r.Faults[0].Fault, hurt, leads)
	}
}

// stopped reports whether a fault has stopped all commits. On a busy machine a short outage may not be measurable.
// Twelve transactions are due in 0.2 s.
func stopped(f fault.Record) bool {
	return f.Outage != nil && *f.Outage > 0 || f.LongestGap != nil && f.LongestGap.Seconds() > 0.2
}
