package foundationdb

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"stroppy/internal/db"
)

// recorded is a part of the status of a cluster of two processes. One of them recovers.
const recorded = `{"client":{"coordinators":{"coordinators":[{"address":"10.0.0.1:4500","reachable":true},{"address":"10.0.0.2:4500","reachable":false}]}},
"cluster":{"generation":7,"database_available":true,"configuration":{"redundancy_mode":"double","storage_engine":"ssd-2"},
"data":{"state":{"healthy":true,"name":"healthy"},"total_kv_size_bytes":1234,"moving_data":{"in_flight_bytes":5,"in_queue_bytes":6}},
"recovery_state":{"name":"fully_recovered"},"fault_tolerance":{"max_zone_failures_without_losing_data":1},
"latency_probe":{"transaction_start_seconds":0.002,"read_seconds":0.001,"commit_seconds":0.004},
"workload":{"transactions":{"started":{"hz":50,"counter":9,"roughness":1},"committed":{"hz":40.5,"counter":8,"roughness":1},"conflicted":{"hz":0,"counter":0,"roughness":-1}},
"operations":{"reads":{"hz":70},"writes":{"hz":60}},"bytes":{"read":{"hz":3000000},"written":{"hz":1000000}}},
"qos":{"released_transactions_per_second":51,"worst_queue_bytes_log_server":7,"worst_queue_bytes_storage_server":8,"worst_data_lag_storage_server":{"seconds":0.5,"versions":500000},"worst_durability_lag_storage_server":{"seconds":5.1},"transactions_per_second_limit":1e5,"performance_limited_by":{"name":"workload"}},
"processes":{"b":{"address":"10.0.0.2:4500","version":"7.3.79","command_line":"fdbserver --knob_a=1 -p x --knob_b=2","excluded":true,"roles":[]},
"a":{"address":"10.0.0.1:4500","version":"7.3.79","command_line":"fdbserver --knob_a=1","roles":[{"role":"storage"},{"role":"log"}]}}}}`

func TestClusterStatusIsParsed(t *testing.T) {
	s, err := parseStatus([]byte(recorded))
	if err != nil {
		t.Fatal(err)
	}
	var info db.Info
	s.describe(&info)
	settings := fmt.Sprint(info.Settings)
	for _, want := range []string{"2, 1 of them excluded", "{redundancy mode double}", "{knobs of the servers a=1, b=2}"} {
		if !strings.Contains(settings, want) {
			t.Errorf("%s does not have %s", settings, want)
		}
	}
	if info.Version != "7.3.79" {
		t.Errorf("the version is %q", info.Version)
	}
	line, err := s.sample()
	if err != nil || !json.Valid(line) || strings.Contains(string(line), "\n") {
		t.Fatalf("%s, %v", line, err)
	}
	for _, want := range []string{
		`"10.0.0.1:4500":["log","storage"]`, `"10.0.0.2:4500":[]`, `"unreachable_coordinators":["10.0.0.2:4500"]`, `"excluded":["10.0.0.2:4500"]`,
		`"database_available":true`, `"data_state":"healthy"`, `"data_healthy":true`, `"max_zone_failures_without_losing_data":1`, // of which k8s/fdb reads its health
		`"recovery_state":"fully_recovered"`, `"moving_bytes":11`, `"worst_durability_lag_seconds":5.1`, `"generation":7`,
	} {
		if !strings.Contains(string(line), want) {
			t.Errorf("%s does not have %s", line, want)
		}
	}
	checkValues(t, &s)
	if _, err := parseStatus([]byte("ERROR: no")); err == nil {
		t.Error("what is no JSON was read")
	}
}

// checkValues checks that each metric has its place in the status, and that a missing value is not known.
func checkValues(t *testing.T, s *status) {
	t.Helper()
	want := map[string]float64{
		"transactions_started_per_s": 50, "transactions_committed_per_s": 40.5, "transactions_conflicted_per_s": 0, "transactions_released_per_s": 51,
		"reads_per_s": 70, "writes_per_s": 60, "read_bytes_per_s": 3e6, "written_bytes_per_s": 1e6, "worst_data_lag_s": 0.5, "worst_durability_lag_s": 5.1,
		"worst_log_queue_bytes": 7, "worst_storage_queue_bytes": 8, "probe_start_s": 0.002, "probe_read_s": 0.001, "probe_commit_s": 0.004, "moving_bytes": 11,
	}
	recovering, err := parseStatus([]byte(`{"client":{},"cluster":{"recovery_state":{"name":"accepting_commits"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	missing := recovering.values()
	for i, x := range s.values() {
		name := metrics()[i].Name
		if expected, there := want[name]; !there || x != expected || !math.IsNaN(missing[i]) {
			t.Errorf("%s is %v, want %v; of a cluster that recovers it is %v", name, x, expected, missing[i])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("there is no %v", want)
	}
	if line, err := recovering.sample(); err != nil || !strings.Contains(string(line), `"moving_bytes":null`) {
		t.Errorf("the state of a cluster that recovers is %s, %v", line, err)
	}
}
