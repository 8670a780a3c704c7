package chains

import (
	"slices"

	"stroppy/internal/history"
)

// keep moves the operations in b.now to t, the last transaction in the batch's list. A transaction of unknown
// outcome may wait until the end, so it has its own memory.
func (f *feed) keep(b *batch, t *transaction, large bool) {
	n := len(b.now)
	if t.has(unknown) {
		own := *t
		own.batch, own.more = f.apart[b.file], slices.Clone(b.now)
		b.apart = append(b.apart, &own)
		b.soon = append(b.soon, upcomingOf(&own))
		return
	}
	switch {
	case n <= len(t.pair):
		t.few = uint8(copy(t.pair[:], b.now))
	case large:
		t.more = b.now[:n:n]
	default:
		b.ops = append(b.ops, b.now...)
		t.more = b.ops[len(b.ops)-n : len(b.ops) : len(b.ops)]
	}
	b.soon = append(b.soon, upcomingOf(t))
	b.live++
}

// clientOf returns the ID without its sequence number, which identifies the client.
func clientOf(id history.ID) history.ID { return id - history.ID(id.Sequence()) }

// asked reports whether the ledger provides the legs of a transaction.
func (f *feed) asked(tx *history.Transaction) bool {
	_, asked := f.legs[tx.ID]
	return asked || blind(tx)
}

// observed adds the operations of a transaction whose client saw what it wrote. A rejected transaction has
// only reads.
func (f *feed) observed(b *batch, t *transaction, tx *history.Transaction) error {
	refused, legs := tx.Outcome == history.Rejected, uint32(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		writes := op.Write && !refused
		switch {
		case op.Object >= f.in.Objects && writes:
			return unproved("%v wrote an object that no load made", tx.ID)
		case op.Object >= f.in.Objects || !op.Observed:
			continue
		case op.Version >= most:
			return unproved("%v read an impossible version", tx.ID)
		}
		b.now = append(b.now, newOperation(op, writes))
		if writes {
			t.flags &^= reader
			b.legs.add(tx.ID, legs, op.Object, op.Amount, op.Version+1)
			legs++
		}
	}
	return nil
}

// resolve adds the operations that the ledger has for a transaction whose client did not see what it made. It
// returns false if the transaction was not applied.
func (f *feed) resolve(b *batch, t *transaction, tx *history.Transaction) (applied bool, err error) {
	if f.legs == nil {
		return false, unproved("what %v made is not recorded", tx.ID)
	}
	rows := slices.Clone(f.legs[tx.ID])
	switch {
	case len(rows) > 0:
	case tx.Outcome == history.Committed:
		return false, unproved("%v was acknowledged and is not in the ledger", tx.ID)
	default:
		b.counts.lookedUp = append(b.counts.lookedUp, tx.ID)
		return false, nil
	}
	if tx.Outcome == history.Unknown {
		t.flags |= unknown
	}
	legs := uint32(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		o := newOperation(op, op.Write)
		switch {
		case op.Object >= f.in.Objects:
			return false, unproved("%v is about an object that no load made", tx.ID)
		case !op.Write && !op.Observed:
			continue
		case op.Version >= most:
			return false, unproved("%v read an impossible version", tx.ID)
		case op.Write:
			n := slices.IndexFunc(rows, func(r history.Row) bool { return r.Object == op.Object && r.Amount == op.Amount })
			if n < 0 || rows[n].Version == 0 || rows[n].Version > most {
				return false, unproved("the ledger has %v otherwise than it was sent", tx.ID)
			}
			if op.Observed && op.Version+1 != rows[n].Version { // it read a version and overwrote a later one
				b.now = append(b.now, newOperation(op, false))
				o.packed &^= seen
			}
			o.version = uint32(rows[n].Version - 1)
			b.legs.add(tx.ID, legs, op.Object, op.Amount, rows[n].Version)
			legs++
			rows = slices.Delete(rows, n, n+1)
			t.flags &^= reader
		}
		b.now = append(b.now, o)
	}
	if len(rows) > 0 {
		return false, unproved("the ledger has more of %v than was sent", tx.ID)
	}
	return true, nil
}
