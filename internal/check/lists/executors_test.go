package lists

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check/checktest"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// executor runs transactions step by step, several at a time. It decides what each read sees and which
// transactions may commit.
type executor struct {
	rng       *rand.Rand
	kept      Storage
	committed store
	log       []map[uint64]bool   // the writes of each commit, in order
	locked    map[uint64]*running // by list, at read committed
}

// running is a transaction that has begun.
type running struct {
	tx    Transaction
	next  int
	from  int // its snapshot, as an index in the log
	state store
	wrote map[uint64]bool
	read  map[uint64]bool
}

// execute runs a history at read committed, at snapshot isolation, or serializably. In the last case, a
// transaction may not commit if another one has written since its snapshot what it read.
func execute(rng *rand.Rand, level isolation.Level, kept Storage, count int) []Transaction {
	e := &executor{rng: rng, kept: kept, committed: store{}, locked: map[uint64]*running{}}
	var open []*running
	var done []Transaction
	now, element := int64(0), uint64(0)
	for len(done) < count {
		now += 2
		if len(open) < 4 && rng.IntN(2) == 0 {
			r := &running{from: len(e.log), state: e.committed.clone(), wrote: map[uint64]bool{}, read: map[uint64]bool{}}
			r.tx = Transaction{ID: history.NewID(1, 1, uint64(len(done)+len(open)*1000+1)), Client: freeClient(open), Begin: now - rng.Int64N(2)}
			for range 1 + rng.IntN(4) {
				op := Op{Kind: Read, Known: true, Key: rng.Uint64N(4)}
				if rng.IntN(2) == 0 {
					element++
					if kept == Values && !slices.ContainsFunc(r.tx.Ops, func(x Op) bool { return x.Key == op.Key }) {
						r.tx.Ops = append(r.tx.Ops, op) // the value that it overwrites
					}
					op = Op{Kind: Append, Key: op.Key, Element: element}
				}
				r.tx.Ops = append(r.tx.Ops, op)
			}
			open = append(open, r)
			continue
		}
		if len(open) == 0 {
			continue
		}
		at := rng.IntN(len(open))
		r := open[at]
		if r.next < len(r.tx.Ops) && (e.step(r, level) || rng.IntN(4) > 0) {
			continue // otherwise it has waited too long and gives up
		}
		open = slices.Delete(open, at, at+1)
		r.tx.Outcome, r.tx.End = history.Aborted, now
		if r.next == len(r.tx.Ops) && e.commit(r, level) {
			r.tx.Outcome = history.Committed
		}
		r.tx.ID = history.NewID(1, 1, uint64(len(done)+1))
		done = append(done, r.tx)
		for key := range r.wrote {
			delete(e.locked, key)
		}
	}
	return append(done, e.finish(now))
}

// freeClient returns a client without an open transaction.
func freeClient(open []*running) (client uint64) {
	for slices.ContainsFunc(open, func(r *running) bool { return r.tx.Client == client }) {
		client++
	}
	return client
}

// step runs the next operation. It returns false if the operation must wait.
func (e *executor) step(r *running, level isolation.Level) bool {
	op := &r.tx.Ops[r.next]
	latest := level == isolation.ReadCommitted && !r.wrote[op.Key]
	if latest && op.Kind == Append && e.locked[op.Key] != nil && e.kept != Values {
		return false
	}
	r.next++
	if latest && !(op.Kind == Append && e.kept == Values) {
		r.state[op.Key] = e.committed[op.Key]
	}
	if op.Kind == Read {
		r.read[op.Key] = true
		op.List = slices.Clone(r.state[op.Key])
		if latest && e.kept == Pieces {
			e.miss(op)
		}
		return true
	}
	if level == isolation.ReadCommitted && e.kept != Values {
		e.locked[op.Key] = r
	}
	r.wrote[op.Key] = true
	r.state[op.Key] = append(slices.Clip(r.state[op.Key]), op.Element)
	return true
}

func (e *executor) commit(r *running, level isolation.Level) bool {
	if level != isolation.ReadCommitted {
		for _, wrote := range e.log[r.from:] {
			for key := range wrote {
				if r.wrote[key] || level == isolation.Serializable && r.read[key] {
					return false
				}
			}
		}
	}
	for _, op := range r.tx.Ops {
		if op.Kind == Append && e.kept == Values {
			e.committed[op.Key] = r.state[op.Key]
		} else if op.Kind == Append {
			e.committed[op.Key] = append(slices.Clip(e.committed[op.Key]), op.Element)
		}
	}
	e.log = append(e.log, r.wrote)
	return true
}

// miss removes rows from a read, as if the read had gone from row to row while others committed.
func (e *executor) miss(op *Op) {
	for i := range len(op.List) - 1 {
		if e.rng.IntN(8) == 0 {
			op.List[i] = Missing
		}
	}
}

// finish returns a transaction that reads everything, so that every append has a known position.
func (e *executor) finish(now int64) Transaction {
	tx := Transaction{ID: history.NewID(1, 2, 1), Client: 1 << 20, Outcome: history.Committed, Begin: now + 10, End: now + 11}
	for key := range uint64(4) {
		tx.Ops = append(tx.Ops, Op{Kind: Read, Known: true, Key: key, List: e.committed[key]})
	}
	return tx
}

// TestExecutionsKeepTheirLevel checks that the histories of an executor satisfy its level, and that some of
// them satisfy no stronger one.
func TestExecutionsKeepTheirLevel(t *testing.T) {
	for _, c := range []struct {
		level  isolation.Level
		kept   Storage
		keeps  []isolation.Level // satisfied by its histories, with real time
		breaks isolation.Level   // broken by some of its histories; Unknown: none
	}{
		{isolation.ReadCommitted, Objects, []isolation.Level{isolation.StrongReadCommitted}, isolation.SnapshotIsolation},
		{isolation.ReadCommitted, Values, []isolation.Level{isolation.StrongReadCommitted}, isolation.SnapshotIsolation},
		{isolation.ReadCommitted, Values, []isolation.Level{isolation.StrongReadCommitted}, isolation.RepeatableRead},
		{isolation.ReadCommitted, Pieces, []isolation.Level{isolation.StrongReadCommitted, isolation.RepeatableRead, isolation.ReadAtomic}, isolation.SnapshotIsolation},
		{isolation.SnapshotIsolation, Objects, []isolation.Level{isolation.StrongSnapshotIsolation}, isolation.Serializable},
		{isolation.SnapshotIsolation, Values, []isolation.Level{isolation.StrongSnapshotIsolation}, isolation.RepeatableRead},
		{isolation.SnapshotIsolation, Pieces, []isolation.Level{isolation.StrongSnapshotIsolation, isolation.RepeatableRead}, isolation.Serializable},
		{isolation.Serializable, Objects, []isolation.Level{isolation.StrictSerializable}, isolation.Unknown},
		{isolation.Serializable, Values, []isolation.Level{isolation.StrictSerializable}, isolation.Unknown},
		{isolation.Serializable, Pieces, []isolation.Level{isolation.StrictSerializable}, isolation.Unknown},
	} {
		broken := 0
		for seed := range uint64(150) {
			list := execute(rand.New(rand.NewPCG(seed, 3)), c.level, c.kept, 30)
			checker, report := decidedAs(t, list, c.kept, nil)
			for _, keeps := range c.keeps {
				if checker.keeps(keeps) != graph.Holds {
					for _, r := range report.Results {
						t.Log(r.Name, r.Status, detail(&r))
					}
					t.Fatalf("seed %d: a history of an executor of %v on %v does not keep %v", seed, c.level, c.kept, keeps)
				}
			}
			checker.holdTogether(t, seed, report)
			if c.breaks != isolation.Unknown && checker.keeps(c.breaks) == graph.Fails {
				broken++
			}
		}
		if c.breaks != isolation.Unknown && broken < 20 {
			t.Errorf("%d of 150 histories of an executor of %v on %v break %v", broken, c.level, c.kept, c.breaks)
		}
	}
}

// TestEverySingleChangeIsJudged changes one thing in a valid history. The result must be valid exactly if the
// definition still allows the history.
func TestEverySingleChangeIsJudged(t *testing.T) {
	rounds := checktest.Rounds(800, 15_000)
	caught := 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 5))
		list := serialHistory(rng, false, false, 0)
		mutate(rng, list)
		c, report := decided(t, list)
		valid := (oracle{list}).some(graph.Real, serializable)
		if state := c.keeps(isolation.StrictSerializable); (state == graph.Holds) != valid {
			t.Fatalf("seed %d: %+v is said to hold: %v, and the definition says %v: %+v", seed, list, state, valid, report.Results)
		}
		if !valid {
			caught++
		}
	}
	if caught < int(rounds/10) {
		t.Errorf("only %d of %d mutations made a history invalid", caught, rounds)
	}
}

// mutate changes one thing in a history.
func mutate(rng *rand.Rand, list []Transaction) {
	t := &list[rng.IntN(len(list))]
	op := &t.Ops[rng.IntN(len(t.Ops))]
	switch rng.IntN(6) {
	case 0:
		t.Outcome = history.Aborted
	case 1: // the transaction was long ago
		length := t.End - t.Begin
		t.Begin = -rng.Int64N(50) - length - 1
		t.End = t.Begin + length
		t.Client = 1000
	case 2:
		if len(op.List) > 0 {
			op.List = op.List[:len(op.List)-1]
		}
	case 3:
		if len(op.List) > 1 {
			op.List[0], op.List[1] = op.List[1], op.List[0]
		}
	case 4:
		if op.Kind == Read {
			op.List = append(slices.Clip(op.List), 99)
		}
	case 5:
		i, j := rng.IntN(len(t.Ops)), rng.IntN(len(t.Ops))
		t.Ops[i], t.Ops[j] = t.Ops[j], t.Ops[i]
	}
}
