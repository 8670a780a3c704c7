package events

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
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

// CheckDirs makes all checks of one run against a log, or of several together: their
// histories are one, and the end state is the one of them all that was downloaded
// last. It needs no database. A directory without a readable history, and directories
// of different logs, are errors; an end state that is not there leaves unknown what
// needs it. Violations are handed to tell as check.EventsInput says; it may be nil.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	f, runs := newFormula(h.Seed), map[uint64]sent{}
	in := check.EventsInput{Expect: expect, Streams: h.Accounts, Name: NamesOf(h).Name, Tell: tell, History: r.Sources()}
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
	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return check.Events(ctx, in)
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
