package run

import (
	"testing"
	"time"

	"stroppy/internal/resource"
)

// TestReadingIsSpreadOverSeconds checks that a reading is spread evenly over the seconds before it for which nothing
// else is known, and that the sum is kept.
func TestReadingIsSpreadOverSeconds(t *testing.T) {
	var samples []resource.Sample
	for i := range 12 {
		samples = append(samples, resource.Sample{From: time.Duration(i) * time.Second, To: time.Duration(i+1) * time.Second,
			Groups: []resource.Usage{{Known: true, CPU: 0.5}, {}}})
	}
	samples[3].Groups[1] = resource.Usage{Known: true, CPU: 2, Over: 4 * time.Second, RSS: 10}
	samples[9].Groups[1] = resource.Usage{Known: true, CPU: 3, Over: 8 * time.Second, RSS: 20} // reaches into the one before
	rows := resources(samples)
	for i, want := range []float64{0.5, 0.5, 0.5, 0.5, 0.375, 0.375, 0.375, 0.375, 0.375, 0.375} {
		if got := rows[i].ServersCPU; got == nil || *got != want || *rows[i].ServersRSS != map[bool]int64{true: 10, false: 20}[i < 4] {
			t.Errorf("second %d: %v, want %g", i, got, want)
		}
	}
	if rows[10].ServersCPU != nil || rows[11].ServersCPU != nil || *rows[11].ClientCPU != 0.5 {
		t.Errorf("after the last reading: %+v", rows[10:])
	}
}
