package run

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/history"
)

// TestWindowsLeaveNothingOut checks that every block is new in one window as long as the check keeps up. Each window
// also has the blocks before it: the round before, or as many transactions as a window holds. If the check does not
// keep up, it counts the transactions left out and goes on with the latest.
func TestWindowsLeaveNothingOut(t *testing.T) {
	skips := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := windows{most: 1 + rng.Uint32N(40), behind: 200}
		next, looked := int64(0), int64(0) // the blocks that are there, and those that were new in a window
		all, round, before := uint64(0), int64(0), int64(0)
		var records []uint32
		for range 1 + rng.IntN(8) {
			var blocks []history.Block
			for range rng.IntN(1 + rng.IntN(40)) {
				b := history.Block{Offset: next, Records: 1 + rng.Uint32N(12)}
				blocks, records = append(blocks, b), append(records, b.Records)
				all += uint64(b.Records)
				next++
			}
			skipped := w.add(blocks)
			if len(blocks) > 0 {
				before, round = round, looked
			}
			if skipped > 0 {
				skips++
				for ; skipped > 0; looked++ {
					skipped -= uint64(records[looked])
				}
				before, round = looked, looked
			}
			for window := w.next(); len(window) > 0; window = w.next() {
				at := slices.IndexFunc(window, func(b history.Block) bool { return b.Offset == looked })
				if at < 0 {
					t.Fatalf("seed %d: block %d is not the next one in %+v", seed, looked, window)
				}
				old := window[:at]
				if whole := looked-int64(at) == before; !whole && transactions(old)+uint64(records[looked-int64(at)-1]) <= uint64(w.most) {
					t.Fatalf("seed %d: of the %d blocks of this round and the one before it only %d are there, with %d transactions", seed, looked-before, at, transactions(old))
				}
				if fresh := window[at:]; len(fresh) > 1 && transactions(fresh) > uint64(w.most) || len(old) > 1 && transactions(old) > uint64(w.most) {
					t.Fatalf("seed %d: a window of %d and %d transactions, of %d", seed, transactions(old), transactions(fresh), w.most)
				}
				for i := range window {
					if window[i].Offset != looked+int64(i-at) {
						t.Fatalf("seed %d: a window has a gap: %+v", seed, window)
					}
				}
				looked += int64(len(window) - at)
			}
			if looked != next {
				t.Fatalf("seed %d: %d of %d blocks were in a window", seed, looked, next)
			}
		}
		if w.looked+w.skipped != all {
			t.Fatalf("seed %d: %d transactions were looked at and %d were left out, of %d", seed, w.looked, w.skipped, all)
		}
	}
	if skips < 100 {
		t.Errorf("only %d rounds had too much", skips)
	}
}
