package kubernetes

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/resource"
)

// TestParseUsageFromKubeletSummary checks that a kubelet's summary is read. Missing values are unknown, and
// volumes other than the data do not count.
func TestParseUsageFromKubeletSummary(t *testing.T) {
	m := &meter{latest: map[types.UID]resource.Reading{}, earlier: map[types.UID]resource.Reading{}}
	must(t, m.take([]byte(`{"node": {}, "pods": [
		{"podRef": {"uid": "a"}, "cpu": {"time": "2026-01-01T00:00:10Z", "usageCoreNanoSeconds": 2500000000}, "memory": {"workingSetBytes": 77},
		 "network": {"time": "2026-01-01T00:00:09Z", "name": "eth0", "rxBytes": 1000, "txBytes": 200, "interfaces": []},
		 "volume": [{"usedBytes": 5, "name": "data", "pvcRef": {"name": "data-a-0", "namespace": "bank"}}, {"usedBytes": 6, "name": "log", "pvcRef": {"name": "log-a-0"}},
			{"usedBytes": 900, "name": "kube-api-access"}]},
		{"podRef": {"uid": "b"}, "cpu": {"time": "2026-01-01T00:00:10Z", "usageCoreNanoSeconds": 1}, "memory": {"workingSetBytes": 2},
		 "network": {"time": "2026-01-01T00:00:09Z", "rxBytes": 1000}, "volume": [{"usedBytes": 5, "name": "log", "pvcRef": {"name": "log-b-0"}}, {"name": "data", "pvcRef": {"name": "data-b-0"}}]},
		{"podRef": {"uid": "c"}, "cpu": {"time": "2026-01-01T00:00:10Z"}, "memory": {"workingSetBytes": 2}}
	]}`)))
	at := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	a, b := m.latest["a"], m.latest["b"]
	if a.Of != "a" || !a.At.Equal(at) || a.CPU != 2.5 || a.RSS != 77 || a.Stored == nil || *a.Stored != 11 ||
		a.Traffic == nil || *a.Traffic != (resource.Traffic{At: at.Add(-time.Second), Received: 1000, Sent: 200}) {
		t.Errorf("a: %+v", a)
	}
	if b.RSS != 2 || b.Traffic != nil || b.Stored != nil {
		t.Errorf("b: %+v", b)
	}
	if _, known := m.latest["c"]; known || len(m.latest) != 2 {
		t.Errorf("%+v", m.latest)
	}
	says(t, m.take([]byte("{")), "the kubelet's summary is invalid")
}
