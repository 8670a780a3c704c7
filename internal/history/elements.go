package history

// The encoding of the elements that a transaction has read, as docs/history-format.md
// describes it. A list grows at its end and is read again and again, so a read is
// written relative to an earlier one of the same list in the block.

const (
	listSlots  = 64 // lists that are remembered: one of each number modulo this
	mostShared = 32 // elements of each that are
)

// maxElement is the most bytes that an element can take: its own, and those that say how many of the
// read before it are the same.
const maxElement = 10 + 1

// readLists are the lists that the records of a block have read, as far as they are
// remembered.
type readLists struct {
	block uint64 // the number of the block
	slots [listSlots]readList
}

// readList is what was read of a list last.
type readList struct {
	block    uint64 // in which it was read; of an earlier one it is forgotten
	object   uint64
	elements []uint64
}

// reads returns how many of the elements of a transaction, of which left are left, an operation has read.
func (op *Op) reads(left int) int {
	if !op.Observed || op.Value <= 0 {
		return 0
	}
	return int(min(op.Value, int64(left)))
}

// lists returns the lists of the block, which are made when they are needed.
func (c *context) lists() *readLists {
	if c.read == nil {
		c.read = &readLists{block: 1}
	}
	return c.read
}

// startBlock returns to the zero context. What it has allocated is used again.
func (c *context) startBlock() {
	read := c.read
	*c = context{read: read}
	if read != nil {
		read.block++
	}
}

// last returns what was read of a list before, which is nothing where that is not remembered.
func (r *readLists) last(object uint64) *readList {
	l := &r.slots[object%listSlots]
	if l.block != r.block || l.object != object {
		l.block, l.object, l.elements = r.block, object, l.elements[:0]
	}
	return l
}

// putElements writes the elements of tx, for which there is room.
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

// elements takes the elements of tx.
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

// run takes n elements, each relative to the last.
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
