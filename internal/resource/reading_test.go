package resource

import (
	"reflect"
	"testing"
	"time"
)

// TestReadingsAreDividedByTimeSincePrevious checks that a new reading of another machine gives a value for the time
// since the previous one. A replacement starts at zero.
func TestReadingsAreDividedByTimeSincePrevious(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var now Reading
	var known bool
	m := New(0, Group{Name: "n0", Read: func() (Reading, bool) { return now, known }})
	bytes := func(n int64) *int64 { return &n }
	for i, step := range []struct {
		reading Reading
		known   bool
		want    Usage
	}{
		{Reading{}, false, Usage{}},
		{Reading{Of: "a", At: at(10), CPU: 5, RSS: 100, Traffic: &Traffic{at(9), 1000, 500}}, true, Usage{}}, // it had used that before
		{Reading{Of: "a", At: at(10), CPU: 5, RSS: 100}, true, Usage{}},
		{
			Reading{Of: "a", At: at(20), CPU: 12, RSS: 300, Traffic: &Traffic{at(19), 3000, 600}, Stored: bytes(70)}, true,
			Usage{Known: true, CPU: 7, Over: 10 * time.Second, RSS: 300, Traffic: &Rate{200, 10}, Stored: bytes(70)},
		},
		{Reading{Of: "a", At: at(25), CPU: 12, RSS: 200}, true, Usage{Known: true, Over: 5 * time.Second, RSS: 200}}, // without its network
		{
			Reading{Of: "a", At: at(30), CPU: 12, RSS: 200, Traffic: &Traffic{at(29), 4000, 600}}, true,
			Usage{Known: true, Over: 5 * time.Second, RSS: 200, Traffic: &Rate{100, 0}},
		},
		{Reading{}, false, Usage{}},
		{Reading{Of: "b", At: at(35), CPU: 2, RSS: 50, Traffic: &Traffic{at(34), 40, 4}}, true, Usage{Known: true, CPU: 2, Over: 5 * time.Second, RSS: 50}},
		{Reading{Of: "b", At: at(30), CPU: 1, RSS: 60}, true, Usage{}}, // an older one
		{Reading{Of: "b", At: at(45), CPU: 6, RSS: 70, Traffic: &Traffic{at(44), 30, 9}, Stored: bytes(60)}, true,
			Usage{Known: true, CPU: 4, Over: 10 * time.Second, RSS: 70, Stored: bytes(60)}}, // its counters began anew
	} {
		now, known = step.reading, step.known
		s := m.Sample(time.Duration(i+1) * time.Second)
		if got := s.Groups[0]; !reflect.DeepEqual(got, step.want) {
			t.Errorf("sample %d is %+v, want %+v", i, got, step.want)
		}
	}
	want := Total{Name: "n0", Known: true, CPU: 13, MaxRSS: 300, Traffic: &Traffic{Received: 3040, Sent: 104}, MaxStored: bytes(70)}
	if got := m.Totals()[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("in all %+v, want %+v", got, want)
	}
}
