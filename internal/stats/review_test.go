package stats

import (
	"testing"
	"time"

	"stroppy/internal/history"
)

// TestGapAtTheEndsOfTheLoadPhase checks a database that stops committing permanently or begins late.
func TestGapAtTheEndsOfTheLoadPhase(t *testing.T) {
	line := new(Timeline)
	for at := 2 * time.Second; at <= 10*time.Second; at += 10 * time.Millisecond {
		tx := history.Transaction{Kind: kindTransfer, Outcome: history.Committed, Due: int64(at), End: int64(at)}
		if err := line.Add(&tx); err != nil {
			t.Fatal(err)
		}
	}
	for end, want := range map[time.Duration]Gap{
		time.Minute:      {10 * time.Second, time.Minute},
		11 * time.Second: {0, 2 * time.Second},
	} {
		if got := line.LongestGapUntil(end); got != want {
			t.Errorf("load phase of %v: %+v, want %+v", end, got, want)
		}
	}
	if got, want := new(Timeline).LongestGapUntil(time.Minute), (Gap{0, time.Minute}); got != want {
		t.Errorf("nothing committed: %+v, want %+v", got, want)
	}
}
