package stats

import (
	"testing"
	"time"

	"stroppy/internal/history"
)

// TestEndedGoesByTheEnd checks that a transaction counts if it ended after the warm-up, even if it was due in the
// warm-up. A transaction that ended in the warm-up must not count.
func TestEndedGoesByTheEnd(t *testing.T) {
	const s = int64(time.Second)
	list := []history.Transaction{
		{Kind: kindTransfer, Outcome: history.Committed, Warmup: true, Due: 0, End: 2*s - 1},
		{Kind: kindTransfer, Outcome: history.Committed, Warmup: true, Due: 1, End: 2 * s},
		{Kind: kindInquiry, Outcome: history.Committed, Warmup: true, Due: 2, End: 3 * s},
		{Kind: kindTransfer, Outcome: history.Rejected, Reason: noFunds, Warmup: true, Due: 3, End: 3 * s},
		{Kind: kindTransfer, Outcome: history.Aborted, Due: 2 * s, End: 4 * s},
		{Kind: kindTransfer, Outcome: history.Unknown, Due: 2 * s, End: 9 * s},
		{Kind: kindAudit, Outcome: history.Committed, Due: 2 * s, End: 3 * s},
	}
	done, recorder := NewEnded(2*time.Second), new(Recorder)
	line := new(Timeline)
	err := line.Read(func(yield func(history.Record, error) bool) {
		for i := range list {
			recorder.Record(&list[i])
			if !yield(history.Record{Transaction: &list[i]}, nil) {
				return
			}
		}
	}, done)
	var passed uint64
	for _, s := range line.Series() {
		passed += s.Committed + s.Rejected + s.Aborted + s.Unknown
	}
	if err != nil || passed != uint64(len(list)-1) || done.Committed != 2 || done.ByKind[kindTransfer] != 1 || done.ByKind[kindInquiry] != 1 ||
		done.Rejected[noFunds] != 1 || done.Aborted != 1 || done.Unknown != 1 {
		t.Errorf("%d in the series, %+v, %v", passed, done, err)
	}
	if f := Merge(recorder); f.Latency.Count != 1 || f.LatencyAborted.Count != 1 { // the audit, which the driver does not give it
		t.Errorf("the latencies are of %d and %d", f.Latency.Count, f.LatencyAborted.Count)
	}
}

// These are the kinds of transactions in the tests.
const (
	kindTransfer = 1 * history.Numbered
	kindInquiry  = 2*history.Numbered | history.ReadOnly
	kindAudit    = 3*history.Numbered | history.ReadOnly | history.Background

	noFunds history.Reason = 1
)
