// Package registers decides whether single records that are read and written by key are
// linearizable and durable.
package registers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Input is all that the checks of registers look at. An operation is on a record: its
// State says what it found there, Writer who wrote the value, 0 for the load, and Value
// its length in bytes.
type Input struct {
	check.Input
	Records uint64                    // that the load made: those with the numbers below it
	Place   func(n uint64) uint64     // where record n stands in the order of the keys
	At      func(place uint64) uint64 // the inverse of Place

	// Value appends the value that a transaction gave to record n in place of that of another
	// one. Nil: nobody knows what it was.
	Value func(b []byte, n uint64, writer, previous history.ID) []byte

	// Bytes is the length of every value; 0: Length returns the length of the value that a
	// transaction, or with the id 0 the load, gave to record n. Nil: nobody knows it.
	Bytes  int64
	Length func(n uint64, writer history.ID) int64

	// The kinds of the transactions that write a record which was not there, that read a
	// record and write it, and that read records in their order.
	Insert, Modify, Scan history.Kind
}

// The names of the checks of registers, beside Durable and NoGhost.
const (
	Values       = "values"
	Fresh        = "fresh"
	NoLostUpdate = "no-lost-update"
	Scans        = "scans"
	Linearizable = "linearizable"
)

// Check makes all checks, on all processors, in time linear in the history. It takes 68
// bytes of memory a write, 4 a transaction, 96 a record that was written, 4 a record of the
// load, and with scans 8 more. It reads the history twice, and once more if a record is not
// linearizable. If an input cannot be read to its end, what depends on the rest is unknown. If a
// recording contradicts itself, everything is. The only error that Check returns wraps the cause
// for which the context ended.
func Check(ctx context.Context, in Input) ([]check.Result, error) {
	if len(in.Early) > 0 {
		in.End = nil
	}
	k := newChecker(ctx, in)
	problem := k.read()
	if problem == nil && k.Uncertainty() > 0 {
		problem = k.compareParts(ctx)
	}
	results := k.results(problem)
	in.SetCommitted(k.committed)
	check.Locate(in.History, &k.Watch, results)
	k.explain(results)
	if k.Watch.Cancelled() {
		return nil, fmt.Errorf("check the history: %w", k.Watch.Err)
	}
	return results, nil
}

type checker struct {
	check.Evidence
	in       Input
	found    [kinds]check.Finding
	names    map[history.Kind]string // of the kinds
	doubts   map[string]int          // by check, what would break it if the clocks were wrong enough
	times    timesAs
	retried  map[history.ID]bool // where times are perhaps: who wrote in a later try than the first
	group    []int               // of each history: the first one that is on the same clock
	groups   []int               // all of these
	slabs    [][]write           // all writes, as write numbers them
	numbers  []uint32            // of the writes, by record and id
	keys     []register          // the records that were written, in the order of numbers
	index    index               // of the records in keys
	places   *places             // the numbers of the writes, by their ids
	foreign  map[uint64]bool     // the runs of which values were seen, and whose histories were not given
	scanned  *scanned            // nil where there is no scan
	damaged  bool                // not all writes could be read
	altered  error               // why the recording is not what clients wrote; nil: it may be
	doubtful bool                // there is a rmw whose outcome is not known
	workers  int                 // goroutines that work at once
	lock     sync.Mutex          // for OnViolation

	committed uint64 // transactions
	observed  uint64 // records that a transaction looked at, whether it found them or not
	values    uint64 // records that it found
	scans     uint64
	updates   uint64 // committed modifies
	writers   uint64 // transactions that write
	ends      uint64 // records in the end state
	touched   uint64 // of no meaning
}

func newChecker(ctx context.Context, in Input) *checker {
	k := &checker{
		Evidence: check.Evidence{Input: in.Input, Watch: check.Watch{Ctx: ctx}}, in: in, found: noFindings(),
		names: map[history.Kind]string{}, foreign: map[uint64]bool{}, workers: runtime.GOMAXPROCS(0),
	}
	for _, source := range in.History {
		for _, kind := range source.Header().Kinds {
			k.names[history.Kind(kind.Number)] = kind.Name
		}
	}
	if in.Part {
		k.workers = 1
	}
	if len(in.Early) > 0 {
		k.Unended = in.Early[0]
	}
	return k
}

// write is what the checks keep of one transaction that writes a record: 64 bytes, which is
// a line of a processor's cache.
type write struct {
	n          uint64
	id         history.ID // 0: what was there before the runs
	previous   history.ID // whose value a rmw had read
	try, end   int64      // ns on the clock of its group; end is never where there was no answer
	readsEnd   int64      // when the first read that returned it ended; never: none did
	readsStart int64      // when the last read that returned it began; always: none did
	source     uint16
	kind       history.Kind
	outcome    history.Outcome
	flags      uint32 // and above them its rank, where link has given it one
}

// The flags of a write.
const (
	early uint32 = 1 << iota // somebody saw it before it began
	rmw                      // it had read previous, and wrote in its place
	gone                     // it was acknowledged, and the end state lacks it

	flagBits = 3
)

func (w *write) is(flag uint32) bool { return w.flags&flag != 0 }

// rank is where it stands among the writes of its record.
func (w *write) rank() int        { return int(w.flags >> flagBits) }
func (w *write) setRank(rank int) { w.flags = w.flags&(1<<flagBits-1) | uint32(rank)<<flagBits }

// always and never are before and after all times.
const (
	always = -1 << 63
	never  = 1<<63 - 1
)

// refused says that it was reported as not applied.
func (w *write) refused() bool {
	return w.outcome == history.Aborted || w.outcome == history.Rejected
}

// applied says that it was acknowledged, or that somebody has seen it.
func (w *write) applied() bool {
	return w.id == 0 || w.outcome == history.Committed || w.outcome == history.Unknown && w.readsEnd != never
}

// register is one record that was written, or that somebody tried to.
type register struct {
	before   write // what was there before the runs
	n        uint64
	from, to uint32        // where the numbers of its writes stand
	final    history.ID    // who wrote what the end state holds
	state    history.State // Whole or Broken in the end state; 0: it is not there
	broken   bool          // it is not linearizable
	update   bool          // an update of it was lost
}

// timesAs says how the times of several histories on one clock are taken that are known within
// bounds.
type timesAs uint8

const (
	surely  timesAs = iota // what has surely ended before something began
	apart                  // each history alone, whose times are exact
	perhaps                // what may have ended before something began
)

// groupClocks finds the histories that are on one clock. One that shares its clock
// with none keeps its own times, which are exact.
func (k *checker) groupClocks() {
	for i, source := range k.in.History {
		k.AddSource(i, source)
	}
	for i := range k.Clocks {
		same := func(c check.Clock) bool { return c.ID == k.Clocks[i].ID && k.times != apart }
		first := slices.IndexFunc(k.Clocks, same)
		if k.times == apart {
			first = i
		}
		k.group = append(k.group, first)
		if first < i {
			continue
		}
		k.groups = append(k.groups, i)
		if !slices.ContainsFunc(k.Clocks[i+1:], same) {
			k.Clocks[i].From, k.Clocks[i].To = 0, 0
		}
	}
	for i := range k.Clocks {
		if c := &k.Clocks[i]; k.times == perhaps {
			c.From, c.To = c.To, c.From
		}
	}
}

// start and stop put a history's time onto the clock of its group.
func (k *checker) start(source int, at int64) int64 { return at + k.Clocks[source].From }
func (k *checker) stop(source int, at int64) int64  { return at + k.Clocks[source].To }

// timed says that the times of a write can be compared with those of a group. What was
// there before the runs was there before all times.
func (k *checker) timed(w *write, group int) bool {
	return w.id == 0 || k.group[w.source] == group
}

// known is when, on the clock of a group, a write had surely been applied.
func (k *checker) known(w *write, group int) int64 {
	if k.timed(w, group) {
		return min(w.end, w.readsEnd)
	}
	return w.readsEnd
}

// read gathers everything. What it has gathered until an error counts.
func (k *checker) read() (problem error) {
	note := func(err error) {
		if problem == nil {
			problem = err
		}
	}
	k.groupClocks()
	note(k.readWrites())
	if k.altered != nil {
		return k.altered
	}
	note(k.readEnd())
	if k.updates > 1 {
		k.eachKey(func(f *finder, o *ordering, key *register) { k.findLostUpdates(f, o, key) })
	}
	for _, g := range k.groups {
		note(k.readGroup(g))
		k.eachKey(func(f *finder, o *ordering, key *register) {
			k.proveUnknown(o, key, g)
			k.findVanished(f, o, key, g)
			k.findDisorder(f, o, key, g)
		})
		note(k.findStale(g))
		if k.Watch.Cancelled() {
			return k.Watch.Err
		}
	}
	return problem
}
