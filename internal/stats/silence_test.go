package stats

import (
	"testing"
	"time"

	"stroppy/internal/history"
)

const milli = time.Millisecond

// request adds a committed transaction of a closed loop.
func (t *Timeline) request(test *testing.T, due, sent, end time.Duration) {
	test.Helper()
	if err := t.Add(&history.Transaction{Kind: kindTransfer, Outcome: history.Committed, Due: int64(due), Sent: int64(sent), End: int64(end)}); err != nil {
		test.Fatal(err)
	}
}

// loop adds the transactions of one client, which sends each after the reply to the last one, or after a
// pause.
func (t *Timeline) loop(test *testing.T, from, to, latency, pause time.Duration) {
	for at := from; at < to; at += latency + pause {
		t.request(test, at, at, at+latency)
	}
}

func nearTo(got, want, by time.Duration) bool { return got >= want-by && got <= want+by }

func TestSilenceOfAnOutage(t *testing.T) {
	line := new(Timeline)
	line.loop(t, 0, 5*time.Second, milli, 0)
	line.request(t, 5*time.Second, 5*time.Second, 16800*milli) // it waited for the server
	line.loop(t, 16800*milli, 18*time.Second, milli, 0)
	s := line.Silence(0, 18*time.Second, SilenceFrom(2*milli), false)
	if s.Count != 1 || !nearTo(s.Total, 11800*milli, 2*milli) || s.Longest.Length() != s.Total || !nearTo(s.Longest.From, 5*time.Second, 2*milli) {
		t.Errorf("%+v", s)
	}
	if s := line.Silence(10*time.Second, 18*time.Second, LeastSilence, false); !nearTo(s.Total, 6800*milli, 2*milli) {
		t.Errorf("after a warm-up of 10 s: %+v", s)
	}
	if s := line.Silence(0, 18*time.Second, 12*time.Second, false); s.Count != 0 {
		t.Errorf("shorter than asked for: %+v", s)
	}
}

// TestSilenceNeedsThatNobodySends checks that rejected requests count as requests, and so do requests of a
// client outside the outage.
func TestSilenceNeedsThatNobodySends(t *testing.T) {
	line := new(Timeline)
	line.request(t, 0, 0, 5*time.Second)
	line.loop(t, 0, 5*time.Second, 10*milli, 0)
	if s := line.Silence(0, 5*time.Second, LeastSilence, false); s.Count != 0 {
		t.Errorf("%+v", s)
	}
}

// TestSilenceOfALostSession checks a client that waits for a new session, with no request in progress.
func TestSilenceOfALostSession(t *testing.T) {
	line := new(Timeline)
	line.loop(t, 0, 2*time.Second, milli, 0)
	line.request(t, 2*time.Second, 6*time.Second, 6*time.Second+milli) // due, but sent when the server was back
	if s := line.Silence(0, 6*time.Second, LeastSilence, true); !nearTo(s.Total, 4*time.Second, 2*milli) {
		t.Errorf("%+v", s)
	}
	if s := line.Silence(0, 10*time.Second, LeastSilence, false); s.Count != 2 || !nearTo(s.Total, 8*time.Second, 4*milli) {
		t.Errorf("no server until the end: %+v", s)
	}
}

func TestPausesAreNoSilence(t *testing.T) {
	line := new(Timeline)
	line.loop(t, 0, 20*time.Second, milli, time.Second)
	line.request(t, 20500*milli, 20500*milli, 23500*milli)
	line.loop(t, 24*time.Second, 30*time.Second, milli, time.Second)
	s := line.Silence(0, 30*time.Second, LeastSilence, true)
	if s.Count != 1 || !nearTo(s.Total, 3*time.Second, 2*milli) {
		t.Errorf("%+v", s)
	}
	if s := line.Silence(0, 22*time.Second, LeastSilence, true); !nearTo(s.Total, 1500*milli, 2*milli) {
		t.Errorf("cut off at 22 s: %+v", s)
	}
}

func TestSilenceOfALongRun(t *testing.T) {
	line := new(Timeline)
	const hour = time.Hour
	line.loop(t, 0, hour, 20*milli, 0)
	line.request(t, hour, hour, hour+30*time.Second)
	line.loop(t, hour+30*time.Second, 2*hour, 20*milli, 0)
	s := line.Silence(0, 2*hour, SilenceFrom(20*milli), false)
	if s.Count != 1 || !nearTo(s.Total, 30*time.Second, 20*milli) {
		t.Errorf("%+v", s)
	}
	if cells := len(line.requests.cells); cells > maxCells {
		t.Errorf("%d cells", cells)
	}
}
