package chains

import (
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Without an end state, some writers of versions are not known: transactions of unknown outcome, transactions
// whose clients did not see their writes, and transactions missing in a recording that was cut off. The reads
// of other transactions show the writers that matter:
//
//   - The chain of an object begins with the first version that a transaction read.
//   - A first pass sums, for each object, the overwritten versions. If they are consecutive, every
//     version has the writer that its client recorded.
//   - A second pass collects all reads and writes of the other objects. READ COMMITTED allows a
//     transaction to read one version and to overwrite a later one. Such a transaction is identified
//     by the reads of the version that it made. A version without a recorded writer gets an anonymous
//     one, which is placed when the version is needed.
//
// Everything else works as with an end state.

// outlook holds what the reads of a history show about its versions.
type outlook struct {
	first []firstSeen
	odd   map[uint64]*oddObject
	legs  map[history.ID][]history.Row // of the transactions that did not make the versions that their clients recorded
	gaps  []gap
}

// firstSeen holds the first version of an object that was read, and sums over its later versions.
type firstSeen struct {
	value        int64
	writer       history.ID
	sum, squares uint64 // over the overwritten versions
	low          uint32 // the first version plus one; 0: no transaction read any
	highest      uint32 // largest version that was read or made
	made         uint32 // number of versions made
}

// gap is a version that no recorded transaction made, and its content as far as it was read.
type gap struct {
	version
	value  int64
	writer history.ID
	known  bool // the version was read
}

// These constants limit the work without an end state: mostOpen objects whose versions are summed (48 bytes each),
// mostSeen reads and writes of odd objects, and mostGaps versions without a writer.
const (
	mostOpen = 1 << 23
	mostSeen = 1 << 22
	mostGaps = 1 << 20
)

// Displaced returns ledger rows for the transactions that made other versions than their clients recorded, as
// far as reads show that. Errors are as for Prove.
//
// If loose is set, two transactions may record the same version without further evidence; then neither gets a
// row. Below snapshot isolation this is not a lost update. Input.End is ignored.
func Displaced(w *check.Watch, in Input) (map[history.ID][]history.Row, error) {
	l, err := look(w, in)
	if err != nil {
		return nil, err
	}
	return l.legs, nil
}

func look(w *check.Watch, in Input) (*outlook, error) {
	if in.Objects > mostOpen {
		return nil, unproved("there are %d objects and no end state", in.Objects)
	}
	l := &outlook{first: make([]firstSeen, in.Objects), odd: map[uint64]*oddObject{}}
	if err := l.addUp(w, in); err != nil {
		return nil, err
	}
	for n := range l.first {
		if o := &l.first[n]; o.low > 0 && !o.follows() {
			l.odd[uint64(n)] = &oddObject{}
		}
	}
	displaced := map[history.ID]bool{}
	if len(l.odd) > 0 {
		if err := l.gather(w, in); err != nil {
			return nil, err
		}
	}
	for _, n := range slices.Sorted(maps.Keys(l.odd)) {
		if err := l.resolve(n, l.odd[n], in.Loose, displaced); err != nil {
			return nil, err
		}
	}
	if err := l.excuse(w, in); err != nil {
		return nil, err
	}
	return l, l.rows(w, in, displaced)
}

// excuse decides who may have made the versions without a known writer: a transaction of unknown outcome, one
// whose client did not see its writes, or one missing in a recording that was cut off.
func (l *outlook) excuse(w *check.Watch, in Input) error {
	named := map[history.ID]bool{}
	for i := range l.first {
		if o := &l.first[i]; o.low > 1 {
			named[o.writer] = true
		}
	}
	for _, g := range l.gaps {
		if g.known {
			named[g.writer] = true
		}
	}
	if len(named) == 0 {
		return nil
	}
	var mutex sync.Mutex
	var odd history.ID
	for _, r := range in.History {
		if err := check.EachTransaction(w.Ctx, r.Source, runtime.GOMAXPROCS(0), func(_ int, _ int64, tx *history.Transaction) {
			mutex.Lock()
			defer mutex.Unlock()
			if named[tx.ID] {
				delete(named, tx.ID)
				if tx.Outcome == history.Rejected || tx.Outcome == history.Aborted {
					odd = tx.ID
				}
			}
		}); err != nil {
			return unread(w, err)
		}
	}
	for id := range named {
		whole := func(r Recording) bool { return r.Header().Run == id.Run() && r.Complete() }
		if id == 0 || slices.ContainsFunc(in.History, whole) {
			return unproved("%v was read and is not recorded", id)
		}
	}
	if odd != 0 {
		return unproved("%v was read and not applied", odd)
	}
	return nil
}

// eachRead calls do for each operation that shows a version, from several goroutines.
func eachRead(w *check.Watch, in Input, do func(tx *history.Transaction, op *history.Op, wrote bool)) error {
	for _, r := range in.History {
		err := check.EachTransaction(w.Ctx, r.Source, runtime.GOMAXPROCS(0), func(_ int, _ int64, tx *history.Transaction) {
			if tx.Outcome != history.Committed && tx.Outcome != history.Rejected {
				return
			}
			for i := range tx.Ops {
				if op := &tx.Ops[i]; op.Observed && op.Object < in.Objects && op.Version < most {
					do(tx, op, op.Write && tx.Outcome == history.Committed)
				}
			}
		})
		if err != nil {
			return unread(w, err)
		}
	}
	return nil
}

// addUp fills first.
func (l *outlook) addUp(w *check.Watch, in Input) error {
	var locks [1 << 10]struct {
		sync.Mutex
		_ [56]byte
	}
	return eachRead(w, in, func(_ *history.Transaction, op *history.Op, wrote bool) {
		lock, o, v := &locks[op.Object%uint64(len(locks))], &l.first[op.Object], uint32(op.Version)
		lock.Lock()
		if o.low == 0 || v+1 < o.low {
			o.low, o.value, o.writer = v+1, op.Value, op.Writer
		}
		o.highest = max(o.highest, v)
		if wrote {
			o.highest = max(o.highest, v+1)
			o.made++
			o.sum += uint64(v)
			o.squares += uint64(v) * uint64(v)
		}
		lock.Unlock()
	})
}

// follows reports whether each version up to the highest was overwritten exactly once or is the last.
func (o *firstSeen) follows() bool {
	from, to := uint64(o.low-1), uint64(o.highest)
	return to-from == uint64(o.made) && o.sum == sumTo(to)-sumTo(from) && o.squares == squaresTo(to)-squaresTo(from)
}

// sumTo returns the sum of the numbers below n, and squaresTo the sum of their squares, modulo 2^64.
func sumTo(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	if n%2 == 0 {
		return n / 2 * (n - 1)
	}
	return (n - 1) / 2 * n
}

func squaresTo(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	factors := [3]uint64{n - 1, n, 2*n - 1}
	for _, d := range [2]uint64{2, 3} {
		for i := range factors {
			if factors[i]%d == 0 {
				factors[i] /= d
				break
			}
		}
	}
	_, product := bits.Mul64(factors[0], factors[1])
	return product * factors[2]
}

// oddObject is an object whose recorded versions are not consecutive.
type oddObject struct {
	seen  map[uint32]gap // what was read of each version
	wrote []overwrite
	torn  bool // two transactions read one version with different contents
}

// overwrite is a transaction with the version that it read and overwrote.
type overwrite struct {
	version uint32
	id      history.ID
	other   uint32 // the version that it made according to other reads; 0: the next one
	lost    bool   // not known
}

// gather fills odd.
func (l *outlook) gather(w *check.Watch, in Input) error {
	var mutex sync.Mutex
	count := 0
	err := eachRead(w, in, func(tx *history.Transaction, op *history.Op, wrote bool) {
		o := l.odd[op.Object]
		if o == nil {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		v := uint32(op.Version)
		if before, known := o.seen[v]; known {
			o.torn = o.torn || before.writer != op.Writer || before.value != op.Value
		} else if count < mostSeen {
			if o.seen == nil {
				o.seen = map[uint32]gap{}
			}
			o.seen[v] = gap{version{uint32(op.Object), v}, op.Value, op.Writer, true}
			count++
		}
		if wrote && count < mostSeen {
			o.wrote = append(o.wrote, overwrite{version: v, id: tx.ID})
			count++
		}
	})
	if err == nil && count >= mostSeen {
		return unproved("too many versions have no maker that is known")
	}
	return err
}

// resolve finds the writers of the versions of an odd object.
func (l *outlook) resolve(n uint64, o *oddObject, loose bool, displaced map[history.ID]bool) error {
	if o.torn {
		return contradiction(n, "a version of object %d was read as two", n)
	}
	seen := map[history.ID]uint32{} // the last version that was read as made by each transaction
	for v, s := range o.seen {
		if s.writer == 0 || v == 0 {
			continue
		}
		if seen[s.writer] != 0 {
			return contradiction(n, "%v was seen as the maker of two versions of object %d", s.writer, n)
		}
		seen[s.writer] = v
	}
	makers := map[uint32]int{} // by version, from 1
	for i := range o.wrote {
		t := &o.wrote[i]
		if v := seen[t.id]; v != 0 && v != t.version+1 {
			if v <= t.version {
				return contradiction(n, "%v made an earlier version of object %d than it read", t.id, n)
			}
			t.other = v
		}
		if t.other == 0 {
			continue
		}
		makers[t.other] = i + 1
		displaced[t.id] = true
	}
	for i := range o.wrote {
		t := &o.wrote[i]
		if t.other != 0 {
			continue
		}
		next := t.version + 1
		read, known := o.seen[next]
		switch {
		case makers[next] == 0 && (!known || read.writer == t.id):
			makers[next] = i + 1
		case !loose:
			return contradiction(n, "two transactions made version %d of object %d", next, n)
		case known && read.writer == t.id:
			return contradiction(n, "two transactions made version %d of object %d", next, n)
		default:
			t.lost = true
			displaced[t.id] = true
		}
	}
	first := &l.first[n]
	for v := first.low; v <= first.highest; v++ {
		if makers[v] != 0 {
			continue
		}
		g, known := o.seen[v]
		if !known {
			g.version = version{uint32(n), v}
		}
		if l.gaps = append(l.gaps, g); len(l.gaps) > mostGaps {
			return contradiction(n, "too many versions have no maker that is known")
		}
	}
	return nil
}

// rows fills legs.
func (l *outlook) rows(w *check.Watch, in Input, displaced map[history.ID]bool) error {
	if len(displaced) == 0 {
		return nil
	}
	other := map[uint64]map[history.ID]*overwrite{}
	for n, o := range l.odd {
		for i := range o.wrote {
			if t := &o.wrote[i]; t.other != 0 || t.lost {
				if other[n] == nil {
					other[n] = map[history.ID]*overwrite{}
				}
				other[n][t.id] = t
			}
		}
	}
	l.legs = map[history.ID][]history.Row{}
	var mutex sync.Mutex
	for id := range displaced {
		l.legs[id] = []history.Row{}
	}
	return eachRead(w, in, func(tx *history.Transaction, op *history.Op, wrote bool) {
		if !wrote || !displaced[tx.ID] {
			return
		}
		row := history.Row{Transaction: tx.ID, Object: op.Object, Amount: op.Amount, Version: op.Version + 1, Number: numberOf(tx, op)}
		if t := other[op.Object][tx.ID]; t != nil {
			if t.lost {
				return
			}
			row.Version = uint64(t.other)
		}
		mutex.Lock()
		l.legs[tx.ID] = append(l.legs[tx.ID], row)
		mutex.Unlock()
	})
}

// numberOf returns the position of a write among the writes of its transaction.
func numberOf(tx *history.Transaction, op *history.Op) (number uint32) {
	for i := range tx.Ops {
		if &tx.Ops[i] == op {
			break
		}
		if tx.Ops[i].Write {
			number++
		}
	}
	return number
}

// begin sets the start of each chain to the first version of the history, and creates writers for the gaps.
func (l *outlook) begin(p *placement, apart *batch) {
	for n := range l.first {
		if f := &l.first[n]; f.low > 1 {
			o := &p.objects[n]
			o.version, o.value, o.writer = f.low-1, f.value, f.writer
		}
	}
	for _, g := range l.gaps {
		t := &transaction{try: -latest, end: -latest, batch: apart, flags: unknown | anonymous, state: ended, few: 1}
		t.pair[0] = operation{value: g.value, writer: g.writer, version: g.number - 1, packed: g.object | write}
		p.makers[g.version] = t
		p.unsure = append(p.unsure, t)
		p.open++
	}
	l.first, l.odd, l.gaps = nil, nil, nil
}

// witnessed adds the operations of a transaction when there is no end state: those that its client saw, and
// the versions that it is known to have made.
func (f *feed) witnessed(b *batch, t *transaction, tx *history.Transaction) (applied bool, err error) {
	if tx.Outcome == history.Unknown {
		return false, nil
	}
	legs, displaced := f.legs[tx.ID]
	for i := range tx.Ops {
		op := &tx.Ops[i]
		switch {
		case op.Object >= f.in.Objects && op.Write && tx.Outcome == history.Committed:
			return false, unproved("%v wrote an object that no load made", tx.ID)
		case op.Object >= f.in.Objects || !op.Observed:
			continue
		case op.Version >= most:
			return false, unproved("%v read an impossible version", tx.ID)
		}
		o := newOperation(op, op.Write && tx.Outcome == history.Committed)
		if displaced && o.write() {
			n := slices.IndexFunc(legs, func(r history.Row) bool { return r.Object == op.Object })
			if n < 0 || legs[n].Version != op.Version+1 {
				b.now = append(b.now, newOperation(op, false))
				if n < 0 {
					continue
				}
				o.version = uint32(legs[n].Version - 1)
				o.packed &^= seen
			}
		}
		if o.write() {
			t.flags &^= reader
		}
		b.now = append(b.now, o)
	}
	return true, nil
}
