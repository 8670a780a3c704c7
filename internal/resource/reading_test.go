package resource

import (
	"testing"
	"time"
)

// TestReadings: a group that is read elsewhere is known where a new reading comes, for the time
// since the one before, and one that takes its place begins at nothing.
func TestReadings(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var now Reading
	var known bool
	m := New(0, Group{Name: "n0", Read: func() (Reading, bool) { return now, known }})
	for i, step := range []struct {
		reading Reading
		known   bool
		want    Usage
	}{
		{Reading{}, false, Usage{}},
		{Reading{"a", at(10), 5, 100}, true, Usage{}}, // it had used that before
		{Reading{"a", at(10), 5, 100}, true, Usage{}},
		{Reading{"a", at(20), 12, 300}, true, Usage{Known: true, CPU: 7, Over: 10 * time.Second, RSS: 300}},
		{Reading{}, false, Usage{}},
		{Reading{"b", at(35), 2, 50}, true, Usage{Known: true, CPU: 2, Over: 15 * time.Second, RSS: 50}},
		{Reading{"b", at(30), 1, 60}, true, Usage{}}, // an older one
		{Reading{"b", at(45), 6, 70}, true, Usage{Known: true, CPU: 4, Over: 10 * time.Second, RSS: 70}},
	} {
		now, known = step.reading, step.known
		s := m.Sample(time.Duration(i+1) * time.Second)
		if got := s.Groups[0]; got != step.want {
			t.Errorf("sample %d is %+v, want %+v", i, got, step.want)
		}
	}
	if got := m.Totals()[0]; got != (Total{"n0", true, 13, 300}) {
		t.Errorf("in all %+v", got)
	}
}
