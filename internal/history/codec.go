package history

import "slices"

// This file encodes records within a block; see docs/reference/history-format.md. All differences are computed modulo
// 2^64, so they cannot overflow.

// These are the bits of a record's first two bytes. The second byte is present if more is set.
const (
	kindMask     = 0x0f // kind, if not escaped
	outcomeShift = 4    // outcome in three bits, if not escaped
	outcomeMask  = 0x07
	more         = 0x80

	moreLookedUp = 0x01
	moreWarmup   = 0x02
	moreReason   = 0x04 // one byte follows
	moreAttempts = 0x08 // a varint follows; otherwise 1
	moreEscape   = 0x10 // kind and outcome follow as one byte each
	moreLimit    = 0x20 // a varint follows; otherwise 0
	moreElements = 0x40 // they follow the operations; otherwise there are none
	moreBroken   = 0x80 // bytes of broken values follow at the end; otherwise there are none
)

// These are the bits of an operation's first byte.
const (
	opWrite    = 0x01
	opObserved = 0x02
	opValues   = 0x04 // version, balance and last follow; otherwise all are zero
	opAmount   = 0x08 // the amount follows; otherwise it is 0 or given by opBalances
	opBalances = 0x10 // the amount is minus the sum of the previous amounts
	opState    = 5    // position of the state, which has three bits
)

// These constants limit the sizes in bytes: the maximum of a transaction without operations and of one
// operation, and the minimum of each.
const (
	maxKind   = 2 + 3 + 2*5
	maxRecord = 2 + 3 + 2*5 + 10 + 4*10 + 10 + 10 + 10
	maxOp     = 1 + 5*10 + 3
	minRecord = 7
	minOp     = 2
)

// context holds the values relative to which records are written. Each block starts with the zero context, so
// that it can be read separately.
type context struct {
	id   ID
	end  int64
	read *readLists // nil until a record has elements

	// before appends the operations of the previous transaction to ops. If it is nil, there are no
	// differences.
	before func(id ID, ops []Op) ([]Op, bool)
	// differed reports whether the last record had differences.
	differed bool
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// put writes v as a varint into b at i and returns the position after it. b must have room. put is like
// binary.PutUvarint, but can be inlined.
func put(b []byte, i int, v uint64) int {
	for v >= 0x80 {
		b[i] = byte(v) | 0x80
		v >>= 7
		i++
	}
	b[i] = byte(v)
	return i + 1
}

// putID writes the parts of id relative to base.
func putID(b []byte, i int, id, base ID) int {
	if id == 0 {
		b[i] = 0
		return i + 1
	}
	i = put(b, i, 1+zigzag(int64(id.Run()-base.Run())))
	i = put(b, i, id.Client())
	return put(b, i, zigzag(int64(id.Sequence()-base.Sequence())))
}

// appendTransaction appends tx and updates the context.
func appendTransaction(b []byte, tx *Transaction, c *context) []byte {
	i := len(b)
	b = slices.Grow(b, maxRecord)
	b = b[:cap(b)]
	i = putHead(b, putKind(b, i, tx, false), tx, c)
	var object uint64
	var balance, sum int64
	for k := range tx.Ops {
		op := &tx.Ops[k]
		if len(b)-i < maxOp {
			b = slices.Grow(b[:i], maxOp)
			b = b[:cap(b)]
		}
		flags := opFlags(op, sum)
		b[i] = flags
		i = put(b, i+1, zigzag(int64(op.Object-object)))
		object = op.Object
		if flags&opAmount != 0 {
			i = put(b, i, zigzag(op.Amount))
		}
		sum += op.Amount
		if flags&opValues != 0 {
			i = put(b, i, op.Version)
			i = put(b, i, zigzag(op.Value-balance))
			balance = op.Value
			i = putID(b, i, op.Writer, tx.ID)
		}
	}
	if len(tx.Elements) > 0 {
		b = slices.Grow(b[:i], 10+maxElement*len(tx.Elements))
		b = b[:cap(b)]
		i = putElements(b, i, tx, c)
	}
	if len(tx.Broken) > 0 {
		b = slices.Grow(b[:i], 10+len(tx.Broken))
		b = b[:cap(b)]
		i = put(b, i, uint64(len(tx.Broken)))
		i += copy(b[i:], tx.Broken)
	}
	return b[:i]
}

// putHead writes the fields between the kind and the operations, and updates the context.
func putHead(b []byte, i int, tx *Transaction, c *context) int {
	i = put(b, i, zigzag(int64(tx.ID-c.id-1)))
	i = put(b, i, zigzag(tx.Sent-c.end))
	i = put(b, i, zigzag(tx.Sent-tx.Due))
	i = put(b, i, zigzag(tx.Try-tx.Sent))
	i = put(b, i, zigzag(tx.End-tx.Try))
	i = put(b, i, uint64(len(tx.Ops)))
	c.id, c.end = tx.ID, tx.End
	return i
}

// appendDifferences appends tx as differences from an earlier transaction.
func appendDifferences(b []byte, tx *Transaction, c *context, e *earlier) []byte {
	i := len(b)
	b = slices.Grow(b, maxRecord)
	b = b[:cap(b)]
	i = putHead(b, putKind(b, i, tx, true), tx, c)
	return e.putDifferences(b[:i], tx)
}

// opFlags returns the first byte of op; sum is the sum of the previous amounts.
func opFlags(op *Op, sum int64) byte {
	values := op.Observed || op.Version|uint64(op.Value)|uint64(op.Writer) != 0
	balances := op.Amount == -sum && op.Amount != 0
	return bit(op.Write, opWrite) | bit(op.Observed, opObserved) | bit(values, opValues) |
		bit(balances, opBalances) | bit(!balances && op.Amount != 0, opAmount) | byte(op.State)<<opState
}

func bit(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

// putKind writes the fields of tx other than ID, times and operations. If the operations are differences, it
// writes a limit of 0 too.
func putKind(b []byte, i int, tx *Transaction, differs bool) int {
	second := bit(tx.LookedUp, moreLookedUp) | bit(tx.Warmup, moreWarmup) | bit(tx.Reason != 0, moreReason) |
		bit(tx.Attempts != 1, moreAttempts) | bit(tx.Kind > kindMask || tx.Outcome > outcomeMask, moreEscape) |
		bit(tx.Limit != 0 || differs, moreLimit) | bit(len(tx.Elements) > 0, moreElements) |
		bit(len(tx.Broken) > 0, moreBroken)
	b[i] = byte(tx.Kind)&kindMask | byte(tx.Outcome)&outcomeMask<<outcomeShift
	if second == 0 {
		return i + 1
	}
	b[i] |= more
	b[i+1] = second
	i += 2
	if second&moreEscape != 0 {
		b[i], b[i+1] = byte(tx.Kind), byte(tx.Outcome)
		i += 2
	}
	if second&moreReason != 0 {
		b[i] = byte(tx.Reason)
		i++
	}
	if second&moreAttempts != 0 {
		i = put(b, i, uint64(tx.Attempts))
	}
	if second&moreLimit != 0 {
		i = put(b, i, uint64(tx.Limit))
	}
	return i
}

// decoder reads records from the payload of one block. After an error, bad is set, no data is left, and all
// reads return zero.
type decoder struct {
	b   []byte
	i   int
	bad bool
}

func (d *decoder) left() int { return len(d.b) - d.i }

func (d *decoder) fail() uint64 {
	d.i, d.bad = len(d.b), true
	return 0
}

func (d *decoder) byte() byte {
	if d.i >= len(d.b) {
		return byte(d.fail())
	}
	d.i++
	return d.b[d.i-1]
}

// unsigned reads a varint.
func (d *decoder) unsigned() uint64 {
	v, i := varint(d.b, d.i)
	if i > len(d.b) {
		return d.fail()
	}
	d.i = i
	return v
}

// takeID reads an ID, like varint.
func takeID(b []byte, i int, base ID) (ID, int) {
	run, i := short(b, i)
	if run == 0 {
		return 0, i
	}
	client, i := short(b, i)
	sequence, i := varint(b, i)
	return NewID(base.Run()+uint64(unzigzag(run-1)), client, base.Sequence()+uint64(unzigzag(sequence))), i
}

// text reads a length and a string of that length.
func (d *decoder) text() string { return string(d.bytes()) }

// bytes reads a length and that number of bytes. The result is a part of the payload.
func (d *decoder) bytes() []byte {
	n := d.unsigned()
	if n > uint64(d.left()) {
		n = d.fail()
	}
	d.i += int(n)
	return d.b[d.i-int(n) : d.i]
}

// transaction reads one transaction into tx. It reuses Ops, Elements and Broken.
func (d *decoder) transaction(tx *Transaction, c *context) {
	second := d.kind(tx)
	c.differed = second&moreLimit != 0 && tx.Limit == 0
	b, i := d.b, d.i
	id, i := short(b, i)
	sent, i := varint(b, i)
	due, i := short(b, i)
	try, i := short(b, i)
	end, i := varint(b, i)
	n, i := short(b, i)
	if i > len(b) || !c.differed && n > uint64((len(b)-i)/minOp) {
		d.fail()
		return
	}
	tx.ID = c.id + 1 + ID(unzigzag(id))
	tx.Sent = c.end + unzigzag(sent)
	tx.Due = tx.Sent - unzigzag(due)
	tx.Try = tx.Sent + unzigzag(try)
	tx.End = tx.Try + unzigzag(end)
	c.id, c.end = tx.ID, tx.End
	tx.Elements = tx.Elements[:0]
	if c.differed {
		d.i = i
		d.compared(tx, c, n)
		return
	}
	if d.i = d.ops(tx, i, int(n)); d.i > len(b) {
		d.fail()
	} else if second&moreElements != 0 {
		d.elements(tx, c)
	}
	if tx.Broken = tx.Broken[:0]; second&moreBroken != 0 {
		tx.Broken = append(tx.Broken, d.bytes()...)
	}
}

// compared reads the n operations of a record of differences.
func (d *decoder) compared(tx *Transaction, c *context, n uint64) {
	tx.Broken = tx.Broken[:0]
	if c.before == nil {
		d.fail()
		return
	}
	ops := tx.Ops[:0]
	if n > manyOps && n > uint64(cap(ops)) && n < maxPayload {
		ops = largeOps.Take(int(n))
	}
	ops, ok := c.before(tx.ID, ops)
	if !ok || uint64(len(ops)) != n {
		d.fail()
		return
	}
	d.differences(tx, ops)
}

// ops reads n operations from i on. It returns the position after them, like varint.
func (d *decoder) ops(tx *Transaction, i, n int) int {
	b, ops := d.b, tx.Ops[:0]
	if n > manyOps && n > cap(ops) {
		ops = largeOps.Take(n)
	}
	var object, v uint64
	var balance, sum int64
	for range n {
		if i >= len(b) {
			i = len(b) + 1
			break
		}
		if len(ops) == cap(ops) {
			ops = slices.Grow(ops, 1)
		}
		ops = ops[:len(ops)+1]
		op := &ops[len(ops)-1]
		flags := b[i]
		v, i = varint(b, i+1)
		object += uint64(unzigzag(v))
		*op = Op{Object: object, Write: flags&opWrite != 0, Observed: flags&opObserved != 0, State: State(flags >> opState)}
		switch {
		case flags&opAmount != 0:
			v, i = varint(b, i)
			op.Amount = unzigzag(v)
		case flags&opBalances != 0:
			op.Amount = -sum
		}
		sum += op.Amount
		if flags&opValues != 0 {
			op.Version, i = varint(b, i)
			v, i = varint(b, i)
			balance += unzigzag(v)
			op.Value = balance
			op.Writer, i = takeID(b, i, tx.ID)
		}
	}
	tx.Ops = ops
	return i
}

// unsigned32 reads a number and fails if it has more than 32 bits.
func (d *decoder) unsigned32() uint32 {
	u := d.unsigned()
	if u > 1<<32-1 {
		u = d.fail()
	}
	return uint32(u)
}

// kind reads the fields of tx other than ID, times and operations. It returns the second byte.
func (d *decoder) kind(tx *Transaction) (second byte) {
	first := d.byte()
	tx.Kind, tx.Outcome = Kind(first&kindMask), Outcome(first>>outcomeShift&outcomeMask)
	tx.LookedUp, tx.Warmup, tx.Reason, tx.Attempts, tx.Limit = false, false, 0, 1, 0
	if first&more == 0 {
		return 0
	}
	second = d.byte()
	tx.LookedUp, tx.Warmup = second&moreLookedUp != 0, second&moreWarmup != 0
	if second&moreEscape != 0 {
		tx.Kind, tx.Outcome = Kind(d.byte()), Outcome(d.byte())
	}
	if second&moreReason != 0 {
		tx.Reason = Reason(d.byte())
	}
	if second&moreAttempts != 0 {
		tx.Attempts = d.unsigned32()
	}
	if second&moreLimit != 0 {
		tx.Limit = d.unsigned32()
	}
	return second
}
