package events

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/logs"
	"stroppy/internal/history"
	"stroppy/internal/workload/recording"
)

// What the header of a history keeps beside the run's numbers.
const (
	keyBatch    = "batch"    // events in one commit
	keyLow      = "size_low" // bytes of a value
	keyHigh     = "size_high"
	keyFragment = "fragment"
	keyMode     = "mode"
)

// checks makes all checks of recorded runs.
func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f, runs := newFormula(h.Seed), map[uint64]sent{}
	in := logs.Input{Input: recorded.Input, Words: sentenceWords(), Streams: h.Accounts}
	in.Name = NamesOf(h).Name
	for _, source := range in.History {
		h := source.Header()
		s, err := sentBy(h)
		if err != nil {
			return nil, fmt.Errorf("check the recording of run %d: %w", h.Run, err)
		}
		runs[h.Run] = s
	}
	in.Batch = func(id history.ID) uint32 { return runs[id.Run()].batch }
	in.Length = func(id history.ID, member uint32) int64 {
		return int64(f.length(runs[id.Run()].size, id, member))
	}
	return logs.Check(ctx, in)
}

// sent is what the appends of one run are like.
type sent struct {
	batch uint32
	size  Size
}

func sentBy(h history.Header) (s sent, err error) {
	number := func(key string, least, most uint64) (n uint64) {
		if n, e := strconv.ParseUint(h.Keys[key], 10, 64); e == nil && n >= least && n <= most {
			return n
		}
		err = fmt.Errorf("the header of the history says that %s is %q, which no run has", key, h.Keys[key])
		return 0
	}
	s.batch = uint32(number(keyBatch, 1, maxBatch))
	s.size = Size{number(keyLow, leastValue, maxValue), number(keyHigh, leastValue, maxValue)}
	if err == nil && s.size.Low > s.size.High {
		err = fmt.Errorf("the header of the history says that values have from %d to %d bytes", s.size.Low, s.size.High)
	}
	return s, err
}

// sentenceWords are those of a log in the sentences of the checks.
func sentenceWords() check.Words {
	return check.Words{One: "append", Book: "log", Part: "event", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// Checks says in one line what each check holds, in the order in which they are reported.
func Checks() [][2]string {
	return [][2]string{
		{check.Durable, "every acknowledged event was read back, whole"},
		{check.NoGhost, "nothing aborted is in the log, and nothing there was never sent"},
		{check.ExactlyOnce, "no event is in the log twice"},
		{logs.Whole, "every entry is byte for byte what its writer made, and every batch is there as a whole or not at all"},
		{logs.Order, "batches stand together, where their writers were told, and in the order in which they were acknowledged"},
		{logs.Continuous, "no stream has a hole before its end"},
	}
}
