// Package rows decides about rows that count their versions: each write of a row makes its next version and names its
// writer in the row. So the versions show the order of all writes of a row, and a read shows whose write it saw.
//
// The history has the operations of a transaction in the order of execution, and may have several on one row. A read
// has the version and its writer; writer 0 stands for the row as the first run found it. A write has the version that
// it replaced, and of an inserted row the state Absent. Its amount is 1 if the value was computed from a read of the row.
// An unknown version or writer makes no finding, and keeps a check from being valid.
package rows

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// NoLostUpdate is the name of a check.
const NoLostUpdate = "no-lost-update"

// These objects are no rows. The amount of their operations is a number of statements.
const (
	_           uint64 = iota // of the workload
	OtherReads                // statements that read and were not recorded
	OtherWrites               // statements that wrote and were not recorded
	Unversioned               // writes of tracked tables whose versions are not known
	First       uint64 = 8    // the first row

	last = 1<<64 - 1025 // the last row; larger numbers are of the workload
)

// Input is a history with its end state. End has the rows with a version above 0.
type Input struct {
	check.Input
	Words check.Words

	// Vanishes reports whether a row may be deleted. If it is inserted again, its versions start again.
	Vanishes func(n uint64) bool
	// Restarts reports whether that may happen unseen. The operations on the row are then ignored.
	Restarts func(n uint64) bool
	// Computes reports whether some writes have the amount 1: they write what was computed from a read of the row.
	Computes bool
}

// op is a read of a version, or the making of one.
type op struct {
	object, version uint64
	writer          history.ID // of a version that was read
	t               uint32
	write, insert   bool
	computed        bool // the value that was written
}

type checker struct {
	check.Evidence
	in      Input
	ops     []op
	tracked fact.Tracked
	blind   uint64                    // transactions with unversioned writes
	rows    map[uint64]history.Object // of the end state

	edges     graph.Edges
	graph     *graph.Graph
	doubt     check.Doubt
	lost      []lostUpdate
	odd       [oddKinds]check.Finding
	ends      [2]check.Finding // RowLost and RowGhost
	twice     []sameVersion
	gap       fact.RowGap
	restarted fact.Fact
	doubled   map[uint64]bool // keys that several rows have
	cycles    [][]graph.Step
	did       map[uint32][]op // of the transactions that are described
	more      map[isolation.Level]bool

	lostWriters map[uint32]bool // transactions with a lost acknowledged write
}

// lostUpdate is a write of t over versions that it had not read, of which by made the first.
type lostUpdate struct {
	object, read, made uint64
	t, by              uint32
	computed           bool // from the version that it had read
}

// sameVersion is a version that two transactions made.
type sameVersion struct {
	object, version uint64
	first, second   uint32
}

// Check returns the results of serializable, strict and, if a kind computes, no-lost-update. With an end state it also
// returns durable and no-ghost. An error comes from the context.
func Check(ctx context.Context, in Input) ([]check.Result, error) {
	c := &checker{in: in, Evidence: check.Evidence{Input: in.Input, Words: in.Words, Watch: check.Watch{Ctx: ctx}}}
	if len(in.Early) > 0 {
		c.Input.End, c.Unended = nil, in.Early[0]
	}
	c.odd = oddFindings()
	for _, step := range []func() error{c.read, c.readEnd} {
		if c.Damage == nil {
			c.Damage = step()
		}
	}
	c.Input.SetCommitted(c.Txns.Committed)
	if c.Damage == nil {
		c.order()
	}
	if c.Watch.Cancelled() {
		return nil, fmt.Errorf("check the history: %w", c.Watch.Err)
	}
	results := c.results()
	check.Locate(in.History, &c.Watch, results)
	return results, nil
}

// gathered holds the operations that one worker has read.
type gathered struct {
	ops     []op
	tracked fact.Tracked
	blind   uint64
}

// read collects the operations of all transactions that may have been applied.
func (c *checker) read() error {
	workers := runtime.GOMAXPROCS(0)
	if c.in.Part {
		workers = 1
	}
	all := make([]gathered, workers)
	for number, source := range c.in.History {
		c.AddSource(number, source)
		add := func(w int, i uint32, tx *history.Transaction) error {
			all[w].add(i, tx)
			return nil
		}
		err := c.Txns.AddAll(&c.Watch, source, number, workers, func(int) {}, add)
		if err != nil {
			return err
		}
	}
	for i := range all {
		c.ops = append(c.ops, all[i].ops...)
		c.blind += all[i].blind
		c.tracked.Reads += all[i].tracked.Reads
		c.tracked.Writes += all[i].tracked.Writes
		c.tracked.OtherReads += all[i].tracked.OtherReads
		c.tracked.OtherWrites += all[i].tracked.OtherWrites
	}
	slices.SortFunc(c.ops, func(a, b op) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.version, b.version), cmp.Compare(a.t, b.t))
	})
	return nil
}

func (g *gathered) add(t uint32, tx *history.Transaction) {
	if tx.Outcome != history.Committed && tx.Outcome != history.Unknown {
		return
	}
	blind := false
	for i := range tx.Ops {
		o := &tx.Ops[i]
		switch {
		case o.Object == OtherReads:
			g.tracked.OtherReads += uint64(o.Amount)
		case o.Object == OtherWrites:
			g.tracked.OtherWrites += uint64(o.Amount)
		case o.Object == Unversioned:
			blind = true
		case o.Object < First || o.Object > last:
		case !o.Observed:
			blind = blind || o.Write
		case o.Write:
			g.tracked.Writes++
			g.ops = append(g.ops, op{
				object: o.Object, version: o.Version + 1, t: t, write: true,
				insert: o.State == history.Absent, computed: o.Amount != 0,
			})
		default:
			g.tracked.Reads++
			g.ops = append(g.ops, op{object: o.Object, version: o.Version, t: t, writer: o.Writer})
		}
	}
	if blind {
		g.blind++
	}
}

// eachRow calls do with the operations of each row.
func (c *checker) eachRow(do func(ops []op)) {
	for rest := c.ops; len(rest) > 0 && !c.Watch.Ended(); {
		n := 1
		for n < len(rest) && rest[n].object == rest[0].object {
			n++
		}
		switch object := rest[0].object; {
		case c.doubled[object]:
		case !c.restarts(rest[:n]):
			do(rest[:n])
		case c.restarted == nil:
			c.restarted = fact.RowsRestarted{Object: c.Object(object)}
		}
		rest = rest[n:]
	}
}

// restarts reports whether the versions of a row may have started again, because it was deleted and inserted. They have
// not if each version was made once, none is missing, and each read agrees with its maker.
func (c *checker) restarts(ops []op) bool {
	object := ops[0].object
	if c.in.Vanishes == nil || !c.in.Vanishes(object) {
		return false
	}
	if c.in.Restarts(object) {
		return true
	}
	if !slices.ContainsFunc(ops, func(o op) bool { return o.insert }) {
		return false
	}
	makers := []history.ID{0}
	for _, o := range ops {
		if o.write {
			if o.version != uint64(len(makers)) || o.insert != (o.version == 1) {
				return true
			}
			makers = append(makers, c.IDOf(o.t))
		}
	}
	end := c.rows[object]
	return end.Version >= uint64(len(makers)) || slices.ContainsFunc(ops, func(o op) bool {
		return !o.write && (o.version == 0 || o.version >= uint64(len(makers)) || makers[o.version] != o.writer)
	})
}

// prove marks the transactions of unknown outcome that others show as applied: somebody read their versions, or the end
// state has one, or a later version of the row exists and nobody else can have made theirs.
func (c *checker) prove() {
	applied := func(t uint32) bool { return c.Txns.List[t].Applied() }
	seen := func(id history.ID) {
		if t, ok := c.Txns.Find(id); ok && id != 0 && c.Txns.List[t].Outcome == history.Unknown {
			c.Txns.List[t].Seen = 1
		}
	}
	c.eachRow(func(ops []op) {
		for i := range ops {
			if !ops[i].write && c.IDOf(ops[i].t) != ops[i].writer {
				seen(ops[i].writer)
			}
		}
		end, ok := c.rows[ops[0].object]
		if ok {
			seen(end.Writer)
		}
	})
	if c.blind > 0 {
		return
	}
	c.eachRow(func(ops []op) {
		last := c.rows[ops[0].object].Version
		for i := range ops {
			if applied(ops[i].t) {
				last = max(last, ops[i].version)
			}
		}
		for rest := ops; len(rest) > 0; {
			n, makers, taken := 1, 0, false
			for n < len(rest) && rest[n].version == rest[0].version {
				n++
			}
			var maker uint32
			for _, o := range rest[:n] {
				if o.write && applied(o.t) {
					taken = true
				} else if o.write {
					maker = o.t
					makers++
				}
			}
			switch open := !taken && rest[0].version < last; {
			case open && makers == 1:
				c.Txns.List[maker].Seen = 1
			case open && makers > 1:
				c.noteGap(rest[0].object, rest[0].version, 1)
			}
			rest = rest[n:]
		}
	})
}
