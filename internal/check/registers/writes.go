package registers

import (
	"cmp"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// mostWrites is how many writes the checks can number.
const mostWrites = 1 << 31

// readWrites notes every transaction that writes, and of each record that is written what
// was there before.
func (k *checker) readWrites() (problem error) {
	for number, source := range k.in.History {
		for rec := range check.Each(&k.Watch, "the history", source.Transactions(), &problem) {
			if len(rec.Ops) == 0 || !rec.Ops[0].Write {
				continue
			}
			if k.writers == mostWrites {
				return fmt.Errorf("the history has more than %d writes, which is more than one check takes", uint32(mostWrites))
			}
			k.writers++
			w := k.writeOf(number, rec.Transaction)
			if _, ok := k.index[w.n]; !ok {
				k.index[w.n] = 0 // layOut numbers the records
				k.writes = append(k.writes, write{
					n: w.n, try: always, end: always, readsEnd: never, readsStart: always, outcome: history.Committed,
				})
			}
			k.writes = append(k.writes, w)
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

func (k *checker) writeOf(source int, tx *history.Transaction) write {
	op := &tx.Ops[0]
	w := write{
		n: op.Object, id: tx.ID, source: uint16(source), kind: tx.Kind, outcome: tx.Outcome,
		try: k.start(source, tx.Try), end: never, readsEnd: never, readsStart: always,
	}
	switch tx.Outcome {
	case history.Committed:
		w.end = k.stop(source, tx.End)
		if tx.Kind == k.in.Modify {
			k.updates++
		}
	case history.Aborted:
		w.try = k.start(source, tx.Sent) // if it was applied after all, nobody knows by which try
	}
	switch {
	case !op.Observed || tx.Outcome == history.Rejected:
	case tx.Kind == k.in.Modify && op.State == history.Whole:
		w.rmw, w.previous = true, op.Writer
	case tx.Kind == k.in.Insert && op.State == history.Absent:
		w.rmw = true
	}
	return w
}

// layOut puts the writes in order and numbers the records that were written.
func (k *checker) layOut() {
	slices.SortFunc(k.writes, func(a, b write) int {
		if k.Watch.Ended() {
			return 0
		}
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.id, b.id))
	})
	k.keys = make([]register, 0, len(k.index))
	for i := range k.writes {
		n := k.writes[i].n
		if i == 0 || n != k.writes[i-1].n {
			k.index[n] = uint32(len(k.keys))
			k.keys = append(k.keys, register{from: uint32(i)})
		}
		k.keys[len(k.keys)-1].to = uint32(i + 1)
	}
}

// keyOf returns the key of a record that somebody wrote or tried to; nil if nobody.
func (k *checker) keyOf(n uint64) *register {
	if i, ok := k.index[n]; ok {
		return &k.keys[i]
	}
	return nil
}

// of are the writes of a key, by id; the first is what was there before.
func (k *checker) of(key *register) []write { return k.writes[key.from:key.to] }

// writeIn returns the write of an id to a key; nil if there is none.
func (k *checker) writeIn(key *register, id history.ID) *write {
	list := k.of(key)
	i, ok := slices.BinarySearchFunc(list, id, func(w write, id history.ID) int { return cmp.Compare(w.id, id) })
	if !ok {
		return nil
	}
	return &list[i]
}

// loaded says that the load made the record.
func (k *checker) loaded(n uint64) bool { return n < k.in.Records }

// origin are the answers to the question who wrote a value.
type origin uint8

const (
	initial origin = iota // the load; of an insert's record: nobody yet
	sent                  // a transaction of the histories, to this record
	unknown               // a run whose history was not given, or one that the recording may lack
	nobody
)

// writerOf says who wrote a value of record n; the key and the write are nil where
// they are not known.
func (k *checker) writerOf(n uint64, id history.ID) (who origin, key *register, w *write) {
	if key = k.keyOf(n); key != nil {
		w = k.writeIn(key, id)
	}
	switch run := id.Run(); {
	case id == 0 && k.loaded(n):
		return initial, key, w
	case id == 0:
		return nobody, key, nil // the load wrote no such record
	case w != nil:
		return sent, key, w
	case !k.Txns.Covers(run):
		k.foreign[run] = true
		return unknown, key, nil
	case !k.Recorded(run):
		return unknown, key, nil
	}
	return nobody, key, nil
}

// findLostUpdates looks for two transactions that both read one value and both wrote
// in its place.
func (k *checker) findLostUpdates() {
	var updates []*write
	for i := range k.keys {
		if k.Watch.Ended() {
			return
		}
		updates = updates[:0]
		list := k.of(&k.keys[i])
		for j := range list {
			if w := &list[j]; w.kind == k.in.Modify && w.rmw && w.outcome == history.Committed {
				updates = append(updates, w)
			}
		}
		slices.SortFunc(updates, func(a, b *write) int {
			return cmp.Or(cmp.Compare(a.previous, b.previous), cmp.Compare(a.id, b.id))
		})
		for j := 1; j < len(updates); j++ {
			if a, b := updates[j-1], updates[j]; a.previous == b.previous {
				k.find(lost, b.n, []history.ID{b.id, a.id}, "%v and %v both read the value of %v in %v, and both wrote in its place",
					a.id, b.id, writer(b.previous), k.name(b.n))
			}
		}
	}
}
