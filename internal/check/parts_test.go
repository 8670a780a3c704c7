package check

import (
	"math/rand/v2"
	"testing"
	"time"

	"stroppy/internal/history"
)

// clockedSource is a recording with a given header.
type clockedSource struct{ *history.Reader }

func recordedWith(t *testing.T, h history.Header) clockedSource {
	t.Helper()
	dir := t.TempDir()
	w, err := history.Create(dir, h, h.Clients)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return clockedSource{r}
}

// TestPartsSplitByClock checks that a recording becomes one source for each clock, with the bounds of its
// times. A clock that was not compared with others stays separate.
func TestPartsSplitByClock(t *testing.T) {
	keys := map[string]string{KeyClock: "boot 100 102"}
	h := history.Header{Run: 1, Clients: 6, Keys: keys, Clocks: []history.ClockError{
		{Clock: 0, First: 0, Clients: 2}, {Clock: 1, First: 2, Clients: 1, Error: 5}, {Clock: 2, First: 3, Clients: 2, Error: history.Unbounded}, {Clock: 1, First: 5, Clients: 1, Error: 30},
	}}
	var e Evidence
	parts := Parts(recordedWith(t, h))
	for i, want := range []string{"boot 100 102", "boot 70 132", "boot/clock-2 100 102"} {
		if len(parts) != 3 || parts[i].Header().Keys[KeyClock] != want || len(parts[i].Header().Clocks) > 0 {
			t.Fatalf("part %d of %d is %+v", i, len(parts), parts[i].Header())
		}
		e.AddSource(i, parts[i])
	}
	if e.Uncertainty() != 32*time.Nanosecond || !e.Apart() || keys[KeyClock] != "boot 100 102" {
		t.Errorf("the clocks are known to %v, apart %v", e.Uncertainty(), e.Apart())
	}
	h.Clocks = []history.ClockError{{First: 0, Clients: 2}, {First: 2, Clients: 4, Cut: true}}
	e = Evidence{}
	for i, p := range Parts(recordedWith(t, h)) {
		e.Input.History = append(e.Input.History, p)
		e.AddSource(i, p)
	}
	if len(e.Clocks) != 2 || e.Complete() || e.Uncertainty() != 2 || !e.Recorded(history.NewID(1, 1, 9)) || e.Recorded(history.NewID(1, 2, 9)) || e.Recorded(history.NewID(2, 1, 9)) {
		t.Errorf("with clients that were cut off there are %d parts, complete %v, known to %v", len(e.Clocks), e.Complete(), e.Uncertainty())
	}
	h.Clocks = []history.ClockError{{Clock: 0, First: 0, Clients: 2}, {Clock: 1, First: 2, Clients: 4}}
	if parts := Parts(recordedWith(t, h)); parts != nil {
		t.Errorf("clocks without an error make %d parts", len(parts))
	}
}

// TestLatestAgainstAllTimes compares Latest with an oracle that keeps all times.
func TestLatestAgainstAllTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var l, other Latest
		all := map[uint32][]int64{}
		for range rng.IntN(9) {
			at, group := rng.Int64N(20), rng.Uint32N(4)
			all[group] = append(all[group], at)
			if rng.IntN(2) == 0 {
				l.Add(at, group)
			} else {
				other.Add(at, group)
			}
		}
		l.Join(&other)
		for group := range uint32(5) {
			want, some := int64(-1), false
			for of, list := range all {
				for _, at := range list {
					if of != group {
						want, some = max(want, at), true
					}
				}
			}
			if at, ok := l.Beside(group); ok != some || ok && at != want {
				t.Fatalf("beside %d of %v: %d, %v", group, all, at, ok)
			}
		}
	}
}
