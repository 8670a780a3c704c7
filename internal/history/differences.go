package history

import (
	"slices"
	"sync"
)

// A transaction with many reads, such as an audit, may follow another one of its client over the same
// objects. It is then recorded as the difference, because most objects did not change. Such a record is the
// first of its block, and the previous transaction is the only one in the client's previous block. After
// mostDifferences such records, a complete one is written, which limits the reads for one record.
const (
	leastDifferences = 256 // operations
	mostDifferences  = 64
)

// earlier is a transaction that a later one may be compared with.
type earlier struct {
	id  ID
	ops []Op
	row int // number of consecutive differences up to it
}

// comparable reports whether a transaction can be recorded as differences.
func (e *earlier) comparable(tx *Transaction) bool {
	if e.row >= mostDifferences || tx.ID != e.id+1 || len(tx.Ops) != len(e.ops) || len(tx.Ops) < leastDifferences ||
		len(tx.Elements)+len(tx.Broken) > 0 || tx.Limit != 0 {
		return false
	}
	changed := 0
	for i := range tx.Ops {
		op, before := &tx.Ops[i], &e.ops[i]
		if op.Object != before.Object || op.Write || op.Amount != 0 {
			return false
		}
		if *op != *before {
			changed++
		}
	}
	return changed <= len(tx.Ops)/2
}

// note keeps a transaction for the next one.
func (e *earlier) note(tx *Transaction, row int) {
	e.id, e.row = tx.ID, row
	e.ops = append(e.ops[:0], tx.Ops...)
}

// putDifferences appends the operations of tx that differ from e.
func (e *earlier) putDifferences(b []byte, tx *Transaction) []byte {
	changed := uint64(0)
	for i := range tx.Ops {
		if tx.Ops[i] != e.ops[i] {
			changed++
		}
	}
	b = slices.Grow(b, 10)
	b = b[:put(b[:cap(b)], len(b), changed)]
	last := -1
	for k := range tx.Ops {
		op, before := &tx.Ops[k], &e.ops[k]
		if *op == *before {
			continue
		}
		b = slices.Grow(b, maxOp)
		i, all := len(b), b[:cap(b)]
		i = put(all, i, uint64(k-last-1))
		last = k
		flags := opFlags(op, 0)
		all[i] = flags
		i++
		if flags&opValues != 0 {
			i = put(all, i, zigzag(int64(op.Version-before.Version)))
			i = put(all, i, zigzag(op.Value-before.Value))
			i = putID(all, i, op.Writer, tx.ID)
		}
		b = all[:i]
	}
	return b
}

// differences reads the operations of tx; ops are the operations of the previous transaction.
func (d *decoder) differences(tx *Transaction, ops []Op) {
	changed := d.unsigned()
	next := uint64(0)
	for ; changed > 0 && !d.bad; changed-- {
		next += d.unsigned()
		if next >= uint64(len(ops)) {
			d.fail()
			return
		}
		op := &ops[next]
		next++
		flags := d.byte()
		version, value := op.Version, op.Value
		*op = Op{Object: op.Object, Observed: flags&opObserved != 0, State: State(flags >> opState)}
		if flags&opValues != 0 {
			op.Version = version + uint64(unzigzag(d.unsigned()))
			op.Value = value + unzigzag(d.unsigned())
			if op.Writer, d.i = takeID(d.b, d.i, tx.ID); d.i > len(d.b) {
				d.fail()
			}
		}
	}
	tx.Ops = ops
}

// earlierReads finds the transactions that records of differences refer to. Several goroutines may use it.
type earlierReads struct {
	mutex  sync.Mutex
	walked int64            // end of the part of the file that was walked
	last   map[uint32]Block // by client: the last block up to there
	before map[int64]Block  // by offset: the client's previous block, if it has one record
	recent []recentRead     // the transactions read last
	unused Memory[Op]
}

// recentRead is the transaction of a block.
type recentRead struct {
	offset int64
	id     ID
	ops    []Op
}

// mostRecent is the number of transactions that are kept.
const mostRecent = 3

// take appends the operations of the transaction in the client's block before an offset to ops. It reports
// false if there is none.
func (e *earlierReads) take(s *blockSource, offset int64, id ID, ops []Op) ([]Op, bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	var unread []Block // blocks to read; each precedes the next
	for at := offset; ; {
		b, ok := e.previous(s, at)
		if !ok || len(unread) > mostDifferences {
			return nil, false
		}
		unread = append(unread, b)
		if e.find(b.Offset) != nil || !s.differing(b) {
			break
		}
		at = b.Offset
	}
	for _, b := range slices.Backward(unread) {
		if e.find(b.Offset) == nil && !e.read(s, b) {
			return nil, false
		}
	}
	found := e.find(unread[0].Offset)
	if found == nil || found.id+1 != id {
		return nil, false
	}
	return append(ops[:0], found.ops...), true
}

func (e *earlierReads) find(offset int64) *recentRead {
	for i := range e.recent {
		if e.recent[i].offset == offset {
			return &e.recent[i]
		}
	}
	return nil
}

// previous finds the client's block before the one at an offset.
func (e *earlierReads) previous(s *blockSource, offset int64) (Block, bool) {
	if b, ok := e.before[offset]; ok {
		return b, true
	}
	if e.last == nil {
		e.last, e.before, e.walked = map[uint32]Block{}, map[int64]Block{}, s.first
	}
	now, err := s.grown()
	if err != nil {
		return Block{}, false
	}
	_, e.walked, _ = now.walk(e.walked, func(b Block) error { // readers of the blocks report their damage
		if before, ok := e.last[b.Client]; ok && before.Records == 1 {
			e.before[b.Offset] = before
		}
		e.last[b.Client] = b
		return nil
	})
	b, ok := e.before[offset]
	return b, ok
}

// differing reports whether the first record of a block is a record of differences.
func (s *blockSource) differing(b Block) bool {
	start := make([]byte, min(int(b.Length), maxKind))
	if s.read(start, b.Offset+blockHeadSize) != nil {
		return false
	}
	var tx Transaction
	d := decoder{b: start}
	second := d.kind(&tx)
	return second&moreLimit != 0 && tx.Limit == 0 && !d.bad
}

// read reads a block of one record.
func (e *earlierReads) read(s *blockSource, b Block) bool {
	payload, err := s.payload(b, largeBuffers.Take(int(b.Length)))
	if err != nil {
		return false
	}
	defer largeBuffers.Put(payload)
	var tx Transaction
	d := decoder{b: payload}
	c := context{before: func(id ID, ops []Op) ([]Op, bool) {
		p, ok := e.before[b.Offset]
		found := e.find(p.Offset)
		if !ok || found == nil || found.id+1 != id {
			return nil, false
		}
		return append(ops[:0], found.ops...), true
	}}
	tx.Ops = e.unused.Take(0)
	d.transaction(&tx, &c)
	if d.bad || b.Records != 1 {
		return false
	}
	e.keep(b.Offset, tx.ID, tx.Ops)
	return true
}

// keep stores the operations of a transaction without a copy.
func (e *earlierReads) keep(offset int64, id ID, ops []Op) {
	if len(e.recent) == mostRecent {
		e.unused.Put(e.recent[0].ops)
		e.recent = slices.Delete(e.recent, 0, 1)
	}
	e.recent = append(e.recent, recentRead{offset, id, ops})
}

// note stores a transaction that was read from differences.
func (e *earlierReads) note(offset int64, tx *Transaction) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.find(offset) == nil {
		e.keep(offset, tx.ID, append(e.unused.Take(len(tx.Ops)), tx.Ops...))
	}
}
