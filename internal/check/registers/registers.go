// Package registers decides whether single records that are read and written by key are
// linearizable and durable.
package registers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Input is all that the checks of registers look at. An operation is on a record: its
// state says what it found there, Last who wrote the value, 0 for the load, and Balance
// its length in bytes.
type Input struct {
	check.Input
	Records uint64                // that the load made: those with the numbers below it
	Place   func(n uint64) uint64 // where record n stands in the order of the keys
}

// The names of the checks of registers, beside Durable and NoGhost.
const (
	Values       = "values"
	Fresh        = "fresh"
	NoLostUpdate = "no-lost-update"
	Scans        = "scans"
	Linearizable = "linearizable"
)

// Check makes all checks of records that are read and written by key. It takes memory linear in the writes, 64
// bytes each, and in the records that were written, about 120 each; a read takes none.
// Where there were scans the records of the load take 8 bytes each, too. The time is
// that of reading the history twice, and once more where a record is not
// linearizable, and of sorting the writes. An error in reading makes every check
// unknown that could not be decided without what it hides. The only error that KV
// returns wraps the cause for which the context ended.
func Check(ctx context.Context, in Input) ([]check.Result, error) {
	k := &checker{in: in, watch: check.Watch{Ctx: ctx}}
	if len(in.Early) > 0 {
		k.in.End, k.unended = nil, in.Early[0]
	}
	problem := k.read()
	results := []check.Result{k.values(), k.fresh(), k.noLostUpdate(), k.scanned(), k.linearizable(), k.durable(), k.noGhost()}
	k.settle(results, problem)
	check.Locate(in.History, &k.watch, results)
	if k.watch.Ask() {
		return nil, fmt.Errorf("check the history: %w", k.watch.Err)
	}
	return results, nil
}

// checker is the material of all checks.
type checker struct {
	in      Input
	watch   check.Watch
	unended uint64       // a run that may have gone on after the end state was downloaded; 0 is none
	clocks  []clockShift // a history
	groups  int          // of histories on one clock
	writes  []write      // by record and id; the first of each record is what was there before the runs
	keys    []register   // the records that were written, in the order of writes
	index   index
	covered map[uint64]bool // runs whose history is given; true: all of it

	reads, scans, writers uint64 // observed records, scans, transactions that write
	updates               uint64 // of them, committed modifies
	lookups               lookups
	ends                  uint64 // records in the end state

	wrongRead   findings // values that nobody wrote
	dirtyRead   findings // values of transactions that were refused
	stale       findings
	lost        findings // updates
	hole        findings // scans that lack a record of the load, or are out of order
	staleScan   findings // scans that lack an insert that had been acknowledged
	disordered  findings // records without an order
	vanished    findings // acknowledged writes that are not in the end state
	ghosts      findings
	unplaced    string // why whether a scan is complete cannot be decided; empty if it can
	foreignRuns map[uint64]bool
}

// write is what the checks keep of one transaction that writes a record: 64 bytes.
type write struct {
	n          uint64
	id         history.ID // 0: what was there before the runs
	previous   history.ID // whose value a rmw had read
	try, end   int64      // ns on the clock of its group; end is never where nobody was told
	readsEnd   int64      // when the first read that returned it ended; never: none did
	readsStart int64      // when the last read that returned it began; always: none did
	source     uint16
	kind       history.Kind
	outcome    history.Outcome
	early      bool // somebody saw it before it began
	rmw        bool // it had read previous, and wrote in its place
}

// always and never are before and after all times.
const (
	always = -1 << 63
	never  = 1<<63 - 1
)

// known is when the write had surely been applied.
func (w *write) known() int64 { return min(w.end, w.readsEnd) }

// refused says that its client was told that it was not applied.
func (w *write) refused() bool {
	return w.outcome == history.Aborted || w.outcome == history.Rejected
}

// applied says that it was acknowledged, or that somebody has seen it.
func (w *write) applied() bool {
	return w.id == 0 || w.outcome == history.Committed || w.outcome == history.Unknown && w.readsEnd != never
}

// register is one record that was written, or that somebody tried to.
type register struct {
	from, to uint32        // its writes
	final    history.ID    // who wrote what the end state holds
	state    history.State // Whole or Broken in the end state; 0: it is not there
	broken   bool          // it is not linearizable
}

// clockShift is what is added to a history's times so that those of all histories on
// one clock can be compared.
type clockShift struct {
	group    int
	from, to int64 // ns, of beginnings and of ends
}

// groupClocks finds the histories that are on one clock. One that shares its clock
// with none keeps its own times, which are exact.
func (k *checker) groupClocks() {
	count, group := map[string]int{}, map[string]int{}
	clocks := make([]check.Clock, len(k.in.History))
	for i, source := range k.in.History {
		c, ok := check.ClockOf(source.Header())
		if !ok {
			c = check.Clock{ID: strconv.Itoa(i)}
		}
		clocks[i] = c
		count[c.ID]++
	}
	for _, c := range clocks {
		g, ok := group[c.ID]
		if !ok {
			g = k.groups
			k.groups++
			group[c.ID] = g
		}
		shift := clockShift{group: g}
		if count[c.ID] > 1 {
			shift.from, shift.to = c.From, c.To
		}
		k.clocks = append(k.clocks, shift)
	}
}

// start and stop put a history's time onto the clock of its group.
func (k *checker) start(source int, at int64) int64 { return at + k.clocks[source].from }
func (k *checker) stop(source int, at int64) int64  { return at + k.clocks[source].to }

// read gathers everything. What it has gathered until an error counts.
func (k *checker) read() error {
	k.groupClocks()
	k.covered, k.foreignRuns = map[uint64]bool{}, map[uint64]bool{}
	for _, source := range k.in.History {
		k.covered[source.Header().Run] = source.Complete()
	}
	problem := k.readWrites()
	k.layOut()
	if err := k.readEnd(); problem == nil {
		problem = err
	}
	k.findLostUpdates()
	places := k.newPlaces()
	for g := range k.groups {
		if err := k.readGroup(g, places); problem == nil {
			problem = err
		}
		if k.watch.Ended() {
			return k.watch.Err
		}
		k.proveUnknown(g)
		k.findDisorder(g)
		k.findVanished(g)
		if err := k.findStale(g); problem == nil {
			problem = err
		}
	}
	if k.groups == 0 {
		k.findVanished(0)
	}
	return problem
}

// settle leaves undecided what a problem, or what is missing, does not let be valid.
func (k *checker) settle(results []check.Result, problem error) {
	for i := range results {
		r := &results[i]
		r.Witness = check.Distinct(r.Witness)
		if r.Status != check.Valid {
			continue
		}
		why := ""
		switch {
		case problem != nil:
			why = problem.Error()
		case len(k.in.History) == 0:
			why = "there is no history of what the clients saw; give the run's directory"
		case (r.Name == check.Durable || r.Name == check.NoGhost) && k.in.End == nil:
			why = check.WhyNoEnd(k.unended)
		case !k.in.Complete():
			why = "the recording was cut off, so what the last transactions did and saw is not known"
		case len(k.foreignRuns) > 0 && r.Name != Scans:
			why = k.foreign()
		case r.Name == Scans && k.unplaced != "":
			why = k.unplaced
		case k.groups > 1 && (r.Name == Fresh || r.Name == Linearizable):
			why = fmt.Sprintf("within each run nothing contradicts it, but the runs are on %d clocks that nobody has compared", k.groups)
		}
		if why != "" {
			r.Status, r.Detail = check.Unknown, "Not decided: "+why+"."
		}
	}
}

// foreign says which runs' writes were seen although their histories were not given.
func (k *checker) foreign() string {
	runs := slices.Sorted(maps.Keys(k.foreignRuns))
	if len(runs) == 1 {
		return fmt.Sprintf("values were seen of run %d, whose history was not given: give its directory too", runs[0])
	}
	return fmt.Sprintf("values were seen of %d runs whose histories were not given, the first of them run %d: give their directories too", len(runs), runs[0])
}
