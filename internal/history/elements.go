package history

// This file encodes the elements that a transaction read; see docs/reference/history-format.md. A list grows at its end
// and is read repeatedly. So a read is written relative to an earlier read of the same list in the block.

const (
	listSlots  = 64 // number of remembered lists: one for each number modulo this
	mostShared = 32 // number of remembered elements of each list
)

// maxElement is the maximal number of bytes for an element, including the count of elements shared with the
// previous read.
const maxElement = 10 + 1

// readLists remembers the lists that the records of a block have read.
type readLists struct {
	block uint64 // number of the block
	slots [listSlots]readList
}

// readList is the last read of a list.
type readList struct {
	block    uint64 // the block in which it was read; other blocks ignore it
	object   uint64
	elements []uint64
}

// reads returns the number of elements that an operation read, if left elements of the transaction remain.
func (op *Op) reads(left int) int {
	if !op.Observed || op.Value <= 0 {
		return 0
	}
	return int(min(op.Value, int64(left)))
}

// lists returns the lists of the block. It allocates them on the first call.
func (c *context) lists() *readLists {
	if c.read == nil {
		c.read = &readLists{block: 1}
	}
	return c.read
}

// startBlock resets the context and keeps its memory.
func (c *context) startBlock() {
	read := c.read
	*c = context{read: read}
	if read != nil {
		read.block++
	}
}

// last returns the previous read of a list, which is empty if it is not remembered.
func (r *readLists) last(object uint64) *readList {
	l := &r.slots[object%listSlots]
	if l.block != r.block || l.object != object {
		l.block, l.object, l.elements = r.block, object, l.elements[:0]
	}
	return l
}

// putElements writes the elements of tx. b must have room.
func putElements(b []byte, i int, tx *Transaction, c *context) int {
	elements := tx.Elements
	i = put(b, i, uint64(len(elements)))
	lists := c.lists()
	var last uint64
	for k := range tx.Ops {
		op := &tx.Ops[k]
		n := op.reads(len(elements))
		if n == 0 {
			continue
		}
		list := lists.last(op.Object)
		same := 0
		for same < min(n, len(list.elements)) && elements[same] == list.elements[same] {
			same++
		}
		i = put(b, i, uint64(same))
		if same > 0 {
			last = elements[same-1]
		}
		for _, e := range elements[same:n] {
			i = put(b, i, zigzag(int64(e-last)))
			last = e
		}
		if n > same || same < len(list.elements) {
			list.elements = append(list.elements[:0], elements[:min(n, mostShared)]...)
		}
		elements = elements[n:]
	}
	for _, e := range elements {
		i = put(b, i, zigzag(int64(e-last)))
		last = e
	}
	return i
}

// elements reads the elements of tx.
func (d *decoder) elements(tx *Transaction, c *context) {
	left := d.unsigned()
	if left > uint64(d.left())*mostShared {
		left = d.fail()
	}
	lists := c.lists()
	var last uint64
	for k := 0; k < len(tx.Ops) && left > 0 && !d.bad; k++ {
		op := &tx.Ops[k]
		n := op.reads(int(left))
		if n == 0 {
			continue
		}
		list := lists.last(op.Object)
		same := d.unsigned()
		if same > uint64(min(n, len(list.elements))) {
			d.fail()
			break
		}
		from := len(tx.Elements)
		tx.Elements = append(tx.Elements, list.elements[:same]...)
		if same > 0 {
			last = list.elements[same-1]
		}
		d.run(tx, uint64(n)-same, &last)
		read := tx.Elements[from:]
		list.elements = append(list.elements[:0], read[:min(len(read), mostShared)]...)
		left -= uint64(n)
	}
	d.run(tx, left, &last)
}

// run reads n elements, each relative to the previous one.
func (d *decoder) run(tx *Transaction, n uint64, last *uint64) {
	if n > uint64(d.left()) {
		d.fail()
		return
	}
	i, to := d.i, tx.Elements
	for ; n > 0; n-- {
		var v uint64
		v, i = varint(d.b, i)
		*last += uint64(unzigzag(v))
		to = append(to, *last)
	}
	tx.Elements = to
	if d.i = i; i > len(d.b) {
		d.fail()
	}
}
