package foundationdb

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stroppy/internal/db"
)

// recorded is a piece of the status of a cluster of two processes, one of which recovers.
const recorded = `{"client":{"coordinators":{"coordinators":[{"address":"10.0.0.1:4500","reachable":true},{"address":"10.0.0.2:4500","reachable":false}]}},
"cluster":{"generation":7,"database_available":true,"configuration":{"redundancy_mode":"double","storage_engine":"ssd-2"},
"data":{"state":{"healthy":true,"name":"healthy"},"total_kv_size_bytes":1234,"moving_data":{"in_flight_bytes":5,"in_queue_bytes":6}},
"recovery_state":{"name":"fully_recovered"},"fault_tolerance":{"max_zone_failures_without_losing_data":1},
"qos":{"worst_data_lag_storage_server":{"seconds":0.5,"versions":500000},"worst_durability_lag_storage_server":{"seconds":5.1},"transactions_per_second_limit":1e5,"performance_limited_by":{"name":"workload"}},
"processes":{"b":{"address":"10.0.0.2:4500","version":"7.3.79","command_line":"fdbserver --knob_a=1 -p x --knob_b=2","excluded":true,"roles":[]},
"a":{"address":"10.0.0.1:4500","version":"7.3.79","command_line":"fdbserver --knob_a=1","roles":[{"role":"storage"},{"role":"log"}]}}}}`

func TestStatus(t *testing.T) {
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
		`"recovery_state":"fully_recovered"`, `"moving_bytes":11`, `"worst_durability_lag_seconds":5.1`, `"generation":7`,
	} {
		if !strings.Contains(string(line), want) {
			t.Errorf("%s does not have %s", line, want)
		}
	}
	if _, err := parseStatus([]byte("ERROR: no")); err == nil {
		t.Error("what is no JSON was read")
	}
}
