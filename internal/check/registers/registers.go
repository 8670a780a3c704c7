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

// Input holds what the checks of registers need. In an operation on a record, State holds its finding, Writer the ID of
// the value's writer (0: the load), and Value is the length in bytes.
type Input struct {
	check.Input
	Records uint64                    // number of records of the load; their numbers are below it
	Place   func(n uint64) uint64     // position of record n in the order of the keys
	At      func(place uint64) uint64 // the inverse of Place

	// Value appends the value that a transaction gave to record n when it replaced the value of previous.
	// Nil: the values are not known.
	Value func(b []byte, n uint64, writer, previous history.ID) []byte

	// Bytes is the length of all values. If it is 0, Length returns the length of the value that a
	// transaction, or the load with ID 0, gave to record n. Nil: lengths are not known.
	Bytes  int64
	Length func(n uint64, writer history.ID) int64

	// These kinds of transactions insert a record, read and modify a record, and scan records in order.
	Insert, Modify, Scan history.Kind
}

// These constants name the checks of registers, in addition to Durable and NoGhost.
const (
	Values       = "values"
	Fresh        = "fresh"
	NoLostUpdate = "no-lost-update"
	Scans        = "scans"
	Linearizable = "linearizable"
)

// Check runs all checks on all processors, in time linear in the history.
//
// It needs 68 bytes of memory for each write, 4 for each transaction and 96 for each written record. Each record of the
// load takes 4 bytes more (12 with scans). It reads the history twice, and once more if a record is not linearizable.
//
// If an input cannot be read completely, the checks that depend on the rest are unknown. If a recording
// contradicts itself, all checks are unknown. The only error that Check returns wraps the cause of the
// context's end.
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
	names    map[history.Kind]string // by kind
	doubts   map[string]int          // by check: number of violations that clock errors may hide
	times    timesAs
	retried  map[history.ID]bool // in mode perhaps: writers that made more than one try
	group    []int               // by history: the first history on the same clock
	groups   []int               // all values of group
	slabs    [][]write           // all writes, in the order of their numbers
	numbers  []uint32            // numbers of the writes, sorted by record and ID
	keys     []register          // the written records, in the order of numbers
	index    index               // maps records to positions in keys
	places   *places             // maps IDs to numbers of writes
	foreign  map[uint64]bool     // runs without a history whose values were seen
	scanned  *scanned            // nil: there is no scan
	damaged  bool                // not all writes could be read
	altered  error               // why the recording cannot come from clients; nil: no contradiction
	doubtful bool                // there is an rmw of unknown outcome
	workers  int                 // number of goroutines
	lock     sync.Mutex          // guards OnViolation

	committed uint64 // committed transactions
	observed  uint64 // records that transactions looked for, found or not
	values    uint64 // records that transactions found
	scans     uint64
	updates   uint64 // committed modifies
	writers   uint64 // transactions that write
	ends      uint64 // records in the end state
	touched   uint64 // result of touch, unused
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

// write is the checks' record of a transaction that writes, in one cache line of 64 bytes.
type write struct {
	n          uint64
	id         history.ID // 0: the initial value
	previous   history.ID // the writer of the value that an rmw had read
	try, end   int64      // ns on the clock of its group; end is never if there was no reply
	readsEnd   int64      // end of the first read that returned it; never: none
	readsStart int64      // beginning of the last read that returned it; always: none
	source     uint16
	kind       history.Kind
	outcome    history.Outcome
	flags      uint32 // the flags below and, above them, the rank that link assigns
}

// These are the flags of a write.
const (
	early uint32 = 1 << iota // it was seen before it began
	rmw                      // it read previous and replaced it
	gone                     // it was acknowledged, but the end state lacks it

	flagBits = 3
)

func (w *write) is(flag uint32) bool { return w.flags&flag != 0 }

// rank returns the position among the writes of the record.
func (w *write) rank() int        { return int(w.flags >> flagBits) }
func (w *write) setRank(rank int) { w.flags = w.flags&(1<<flagBits-1) | uint32(rank)<<flagBits }

// always and never are before and after all times.
const (
	always = -1 << 63
	never  = 1<<63 - 1
)

// refused reports whether the write was reported as not applied.
func (w *write) refused() bool {
	return w.outcome == history.Aborted || w.outcome == history.Rejected
}

// applied reports whether the write was acknowledged or seen.
func (w *write) applied() bool {
	return w.id == 0 || w.outcome == history.Committed || w.outcome == history.Unknown && w.readsEnd != never
}

// register is a record that a transaction wrote or tried to write.
type register struct {
	before   write // the initial value
	n        uint64
	from, to uint32        // range of its writes in numbers
	final    history.ID    // writer of the final value
	state    history.State // Whole or Broken in the end state; 0: missing
	broken   bool          // not linearizable
	update   bool          // it has a lost update
}

// timesAs is the way to compare times of several histories on one clock with bounded errors.
type timesAs uint8

const (
	surely  timesAs = iota // what certainly ended before another operation began
	apart                  // each history alone, with exact times
	perhaps                // what may have ended before another operation began
)

// groupClocks groups the histories by clock. A history with a clock of its own keeps its exact times.
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

// start and stop convert a history's time to the clock of its group.
func (k *checker) start(source int, at int64) int64 { return at + k.Clocks[source].From }
func (k *checker) stop(source int, at int64) int64  { return at + k.Clocks[source].To }

// timed reports whether the times of a write are comparable with the times of a group. The initial value
// precedes all times.
func (k *checker) timed(w *write, group int) bool {
	return w.id == 0 || k.group[w.source] == group
}

// known returns the time, on the clock of a group, at which a write had certainly been applied.
func (k *checker) known(w *write, group int) int64 {
	if k.timed(w, group) {
		return min(w.end, w.readsEnd)
	}
	return w.readsEnd
}

// read collects all data. After an error, the data collected so far counts.
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
