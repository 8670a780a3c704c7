package logs

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
)

// oracle decides the checks by comparing every pair of entries and of appends, directly by the definitions.
// It returns the checks that are broken.
func oracle(d *diary) map[string]bool {
	wrong := map[string]bool{}
	txns := map[history.ID]*history.Transaction{}
	for _, tx := range d.txns {
		txns[tx.ID] = tx
	}
	o := &naive{diary: d, txns: txns, wrong: wrong}
	o.appends()
	o.entries()
	o.pairs()
	o.places()
	wrong[Order] = wrong[Order] || contradicts(d)
	wrong[Whole] = wrong[Whole] || len(d.unexpected) > 0
	return wrong
}

type naive struct {
	*diary
	txns  map[history.ID]*history.Transaction
	wrong map[string]bool
}

// has returns the index of an event's first entry and the number of its entries.
func (o *naive) has(id history.ID, member uint32) (first int, count int) {
	for i := len(o.legs) - 1; i >= 0; i-- {
		if l := o.legs[i]; l.Mark != history.Tombstone && l.Transaction == id && l.Number == member {
			first, count = i, count+1
		}
	}
	return first, count
}

func (o *naive) appends() {
	for _, tx := range o.diary.txns {
		there, void, missing, spoilt := false, false, false, false
		for _, l := range o.legs {
			there = there || l.Transaction == tx.ID && l.Mark != history.Tombstone
			void = void || l.Transaction == tx.ID && l.Mark == history.Tombstone
		}
		for m := range o.batch {
			first, count := o.has(tx.ID, m)
			missing = missing || count == 0
			spoilt = spoilt || count > 0 && o.legs[first].Amount != lengthOf(tx.ID, m)
		}
		committed, unknown := tx.Outcome == history.Committed, tx.Outcome == history.Unknown
		if committed && (missing || spoilt) {
			o.wrong[check.Durable] = true
		}
		if there && (void || !committed && !unknown) || void && !unknown && !tx.LookedUp {
			o.wrong[check.NoGhost] = true
		}
		if there && missing {
			o.wrong[Whole] = true
		}
	}
}

func (o *naive) entries() {
	for i, l := range o.legs {
		tx := o.txns[l.Transaction]
		if tx == nil || l.Mark != history.Tombstone && l.Number >= o.batch {
			o.wrong[check.NoGhost] = true
		}
		if l.State == history.Broken {
			o.wrong[Whole] = true
		}
		if l.Mark == history.Tombstone {
			if tx != nil && tx.Ops[0].Object != l.Object {
				o.wrong[Order] = true
			}
			for _, other := range o.legs[:i] {
				if other.Mark == history.Tombstone && other.Transaction == l.Transaction {
					o.wrong[check.ExactlyOnce] = true
				}
			}
			continue
		}
		first, count := o.has(l.Transaction, l.Number)
		if count > 1 {
			o.wrong[check.ExactlyOnce] = true
		}
		if first != i {
			continue
		}
		if l.Number > 0 {
			p := history.Row{}
			if i > 0 {
				p = o.legs[i-1]
			}
			if p.Mark == history.Tombstone || p.Transaction != l.Transaction || p.Number != l.Number-1 || p.Object != l.Object || p.Version != l.Version-1 {
				o.wrong[Order] = true
			}
		}
		if tx == nil || l.Number >= o.batch {
			continue
		}
		op := tx.Ops[0]
		if l.Object != op.Object || op.Observed && l.Version != op.Version+1+uint64(l.Number) {
			o.wrong[Order] = true
		}
		if l.State != history.Broken && l.Amount != lengthOf(l.Transaction, l.Number) {
			o.wrong[Whole] = true
		}
	}
}

// pairs compares every two acknowledged appends that begin in one stream.
func (o *naive) pairs() {
	begin := func(id history.ID) int {
		for i, l := range o.legs {
			if l.Transaction == id && l.Mark != history.Tombstone {
				return i
			}
		}
		return -1
	}
	for _, a := range o.diary.txns {
		for _, b := range o.diary.txns {
			i, j := begin(a.ID), begin(b.ID)
			if a.Outcome != history.Committed || b.Outcome != history.Committed || i < 0 || j < 0 || i >= j || o.legs[i].Object != o.legs[j].Object {
				continue
			}
			if a.ID.Client() == b.ID.Client() && a.ID.Sequence() > b.ID.Sequence() || b.End < a.Try {
				o.wrong[Order] = true
			}
		}
	}
}

// contradicts reports, by comparing every two, whether no log can have all acknowledged appends at their
// positions in order.
func contradicts(d *diary) bool {
	for _, a := range d.txns {
		for _, b := range d.txns {
			one, other := a.Ops[0], b.Ops[0]
			if a == b || a.Outcome != history.Committed || b.Outcome != history.Committed || !one.Observed || !other.Observed || one.Object != other.Object {
				continue
			}
			together := one.Version < other.Version+uint64(d.batch) && other.Version < one.Version+uint64(d.batch)
			later := a.ID.Client() == b.ID.Client() && a.ID.Sequence() > b.ID.Sequence() || b.End < a.Try
			if together || later && one.Version < other.Version {
				return true
			}
		}
	}
	return false
}

func (o *naive) places() {
	last, writers := map[uint64]uint64{}, map[uint64]history.ID{}
	for i, l := range o.legs {
		if l.Version >= last[l.Object] {
			last[l.Object], writers[l.Object] = l.Version, l.Transaction
		}
		if l.Object >= o.streams {
			o.wrong[Continuous] = true
		}
		for j, other := range o.legs {
			if i != j && l.Object == other.Object && l.Version == other.Version {
				o.wrong[Continuous] = true
			}
		}
	}
	for stream, end := range last {
		for place := uint64(1); place <= end; place++ {
			found := false
			for _, l := range o.legs {
				found = found || l.Object == stream && l.Version == place
			}
			if !found {
				o.wrong[Continuous] = true
			}
		}
	}
	for n := range o.streams {
		ends := 0
		for _, a := range o.ends {
			if a.N == n {
				ends++
				if a.Version != last[n] || a.Writer != writers[n] {
					o.wrong[Continuous] = true
				}
			}
		}
		if ends != 1 {
			o.wrong[Continuous] = true
		}
	}
}
