package drivertest

import (
	"math"
	"regexp"
	"testing"

	"stroppy/internal/db"
)

var metricName = regexp.MustCompile(`^[a-z][a-z_]*[a-z]$`)

// Monitor opens a monitor and checks its metrics. Each metric has its own name, and the metrics of one chart are
// neighbours.
func Monitor(t *testing.T, d db.Monitored) db.Monitor {
	t.Helper()
	m := d.Monitor()
	t.Cleanup(m.Close)
	names, charts, last := map[string]bool{}, map[string]bool{}, ""
	for _, one := range m.Metrics() {
		if names[one.Name] || !metricName.MatchString(one.Name) || one.Label == "" {
			t.Errorf("the metric %+v", one)
		}
		names[one.Name] = true
		if one.Chart != last && one.Chart != "" && charts[one.Chart] {
			t.Errorf("the chart %q is in two places", one.Chart)
		}
		charts[one.Chart], last = true, one.Chart
	}
	return m
}

// Sampled takes a sample, and returns it with its known values by the names of the metrics.
func Sampled(t *testing.T, m db.Monitor) (db.Sample, map[string]float64) {
	t.Helper()
	s, err := m.Sample(t.Context())
	Must(t, err)
	metrics := m.Metrics()
	if len(s.Values) != len(metrics) {
		t.Fatalf("%d values of %d metrics", len(s.Values), len(metrics))
	}
	values := map[string]float64{}
	for i, metric := range metrics {
		if !math.IsNaN(s.Values[i]) {
			values[metric.Name] = s.Values[i]
		}
	}
	return s, values
}
