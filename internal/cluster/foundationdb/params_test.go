package foundationdb

import (
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

func TestParamsRejectInvalidValues(t *testing.T) {
	clustertest.Params(t, func(values url.Values) (params, error) { return parseParams(values, 3) }, map[string]string{
		"": "", "redundancy=double": "", "redundancy=single": "", "storage=memory": "", "processes=2": "", "exclude=on": "", "knobs=test": "",
		"redundancy=triple":    "triple needs at least 5 nodes, but there are 3",
		"redundancy=two":       "not single, double or triple",
		"storage=rocksdb":      "one of ssd, memory",
		"processes=0":          "from 1 to 8",
		"exclude=yes":          "neither on nor off",
		"knobs=fast":           "one of test",
		"set.max_outage=1":     "",
		"set.Bad Name=1":       "not the name of a setting",
		"redundance=double":    "the nearest is redundancy",
		"storage=ssd&storage=": "give it once",
	})
	p, err := parseParams(url.Values{"knobs": {"test"}, "set.failure_max_delay": {"2"}}, 5)
	if err != nil || p.redundancy != "double" || p.knobs["failure_max_delay"] != "2" || p.knobs["failure_min_delay"] != "1" || testKnobs["failure_max_delay"] != "1.5" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := parseParams(nil, 1); err != nil || p.redundancy != "single" || len(p.knobs) != 0 {
		t.Errorf("one node: %+v, %v", p, err)
	}
	for nodes, want := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 9: 5} {
		if got := coordinators(nodes); got != want {
			t.Errorf("%d coordinators of %d nodes, want %d", got, nodes, want)
		}
	}
}

// TestUnhealthyStatusIsRejectedWithCause checks that each status of a cluster that cannot lose a node now is
// rejected with its cause.
func TestUnhealthyStatusIsRejectedWithCause(t *testing.T) {
	const whole = `{"client":{"database_status":{"available":true},"coordinators":{"coordinators":[{"address":"a:1","reachable":true},{"address":"b:1","reachable":true}]}},
"cluster":{"data":{"state":{"healthy":true,"name":"healthy"}},"recovery_state":{"name":"fully_recovered"},"fault_tolerance":{"max_zone_failures_without_losing_data":1},
"processes":{"x":{"address":"a:1","roles":[{"role":"cluster_controller"}]},"y":{"address":"b:1","excluded":false}}}}`
	for change, says := range map[string]string{
		"":                                       "",
		`"available":true>"available":false`:     "not available",
		`"fully_recovered">"all_logs_recruited"`: "all_logs_recruited",
		`"healthy":true>"healthy":false`:         "in the state",
		`"max_zone_failures_without_losing_data":1>"max_zone":1`: "loss of 1 nodes",
		`"y">"z"`: "",
		`"address":"b:1","excluded":false>"address":"c:1"`:                       "b:1 has not joined",
		`"excluded":false>"excluded":true`:                                       "b:1 is excluded",
		`{"address":"b:1","reachable":true}>{"address":"b:1","reachable":false}`: "b:1 does not answer",
		`{"address":"b:1","reachable":true}>{"address":"c:1","reachable":true}`:  "coordinators are not at",
	} {
		from, to, _ := strings.Cut(change, ">")
		s, err := parseStatus([]byte(strings.Replace(whole, from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err = s.whole(1); err == nil {
			err = s.joined([]string{"a:1", "b:1"})
		}
		if err == nil {
			err = s.coordinated([]string{"b:1", "a:1"})
		}
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", change, err, says)
		}
		if s.controller() != "a:1" {
			t.Errorf("the controller is at %q", s.controller())
		}
	}
}
