package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/registers"
)

// kvMix holds arguments with every kind of transaction and few records, so that transactions conflict.
var kvMix = []string{
	"--records", "300", "--clients", "8", "--seed", "7", "--distribution", "zipfian",
	"--read-share", "0.3", "--update-share", "0.2", "--insert-share", "0.1", "--scan-share", "0.1", "--modify-share", "0.3", "--scan-length", "20",
}

// wantKV fails the test unless the run of kv is valid and has every kind of transaction.
func (v verdict) wantKV(t *testing.T, code int, complaints string) {
	t.Helper()
	if code != 0 || v.Verdict != "valid" {
		t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, complaints)
	}
	if len(v.Tables) != 1 || len(v.Tables[0].Rows) != 5 {
		t.Errorf("want the tables of five kinds of transactions, got %+v", v.Tables)
	}
}

// TestKVFindsPlantedBugs checks that each planted bug which single records can show is found by one of its checks.
func TestKVFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	// With many records few are written again, so that a lost commit stays visible.
	seldom := []string{"--modify-share", "0", "--update-share", "0.5", "--distribution", "uniform", "--records", "20000"}
	type mutant struct {
		mutant string
		args   []string
		checks []string // at least one of them
	}
	for _, c := range cases([]mutant{
		{"lost-update", nil, []string{registers.NoLostUpdate}},
		{"stale-read", nil, []string{registers.Fresh}},
		{"stale-read", nil, []string{registers.Linearizable}},
		{"lost-ack", seldom, []string{check.Durable}},
		{"lost-ack", nil, []string{registers.Fresh}},
		{"false-ack-on-crash", seldom, []string{check.Durable}},
		{"ghost", []string{"--retries", "0"}, []string{check.NoGhost, registers.Values}},
	}...) {
		for _, seed := range seeds(2) {
			t.Run(fmt.Sprintf("%s/%s/seed=%d", c.mutant, c.checks[0], seed), func(t *testing.T) {
				url := fmt.Sprintf("memory:?mutant=%s&rate=0.002&seed=%d", c.mutant, seed)
				code, v, why := program(t, "kv", slices.Concat([]string{"--db", url, "--count", "20000"}, kvMix, c.args)...)
				found := slices.ContainsFunc(c.checks, func(name string) bool { return v.status(name) == "invalid" })
				if code != 1 || v.Verdict != "invalid" || !found {
					t.Errorf("exit code %d, verdict %s, %v: %+v\n%s", code, v.Verdict, c.checks, v.Checks, why)
				}
			})
		}
	}
}

// TestKVRunsOnNoopWithoutChecks checks that a database which stores nothing can be loaded with requests.
func TestKVRunsOnNoopWithoutChecks(t *testing.T) {
	t.Parallel()
	code, v, why := program(t, "kv", "--db", "noop:", "--no-check", "--count", "100000", "--in-flight", "2")
	if code != 0 || v.Drive.Committed != 100_000 {
		t.Errorf("exit code %d, %d transactions: %s", code, v.Drive.Committed, why)
	}
}

// TestKVRefusesInvalidSettings checks that invalid settings end the command before the run, with a reason.
func TestKVRefusesInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--in-flight", "8"}, "in-flight is 8, and the library of this database has one transaction under way on a connection"},
		{[]string{"--mode", "procedure"}, "this workload has no mode procedure"},
		{[]string{"--read-share", "0.5"}, "must add up to 1"},
		{[]string{"--accounts", "100"}, "accounts"},
	} {
		code, _, why := program(t, "kv", c.args...)
		if code != 2 || !strings.Contains(why, c.want) {
			t.Errorf("stroppy run kv %v: exit code %d: %s", c.args, code, why)
		}
	}
}

// TestKVSurvivesKilledLeader kills the leader of real clusters during a run.
func TestKVSurvivesKilledLeader(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, c := range []struct {
		cluster, fault string
		more           []string
	}{
		{"etcd:3?memory=on", "kill leader at 2s for 2s", []string{"--duration", "7s"}},
		{"postgres:2?memory=on", "kill primary at 2s for 3s", []string{"--duration", "12s", "--isolation", "repeatable read", "--in-flight", "4"}},
	} {
		t.Run(c.cluster, func(t *testing.T) {
			t.Parallel()
			code, v, why := program(t, "kv", slices.Concat([]string{"--cluster", c.cluster, "--nemesis", c.fault, "--rate", faultyRate}, kvMix, c.more)...)
			v.wantKV(t, code, why)
		})
	}
}
