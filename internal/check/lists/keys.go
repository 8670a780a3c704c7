package lists

import "stroppy/internal/check"

// keyTable numbers the keys of lists from 0, in the order of their first occurrence. It is a hash table with
// open addressing and linear probing.
type keyTable struct {
	key   []uint64
	slot  []uint32 // the number of a key plus one
	shift uint
	last  uint32
}

const firstSlots = 10 // bits

// number returns the number of a key. It assigns a number to a new key.
func (t *keyTable) number(key uint64) uint32 {
	if int(t.last) < len(t.key) && t.key[t.last] == key {
		return t.last
	}
	if len(t.key)*2 >= len(t.slot) {
		t.grow()
	}
	at := t.find(key)
	if t.slot[at] == 0 {
		t.key = append(t.key, key)
		t.slot[at] = uint32(len(t.key))
	}
	t.last = t.slot[at] - 1
	return t.last
}

// find returns the slot of a key, or an empty slot for it.
func (t *keyTable) find(key uint64) uint64 {
	at := key * 0x9e3779b97f4a7c15 >> t.shift // golden ratio hash (Knuth, volume 3, section 6.4)
	for t.slot[at] != 0 && t.key[t.slot[at]-1] != key {
		at = (at + 1) & uint64(len(t.slot)-1)
	}
	return at
}

func (t *keyTable) grow() {
	bits := uint(firstSlots)
	for 1<<bits < 4*len(t.key) {
		bits++
	}
	t.slot, t.shift = make([]uint32, 1<<bits), 64-bits
	for i, key := range t.key {
		t.slot[t.find(key)] = uint32(i + 1)
	}
}

// elementTable finds the positions of elements in one list after another, without an allocation for each
// list.
type elementTable struct {
	element []uint64
	place   []uint32
	list    []uint32 // the list that uses the slot
	number  uint32
	mask    uint64
}

// fill loads the next list. It returns the positions of repeated elements.
func (t *elementTable) fill(list []uint64) (twice []uint32) {
	if t.element == nil || 2*len(list) > len(t.element) {
		size := 64
		for size < 4*len(list) {
			size *= 2
		}
		*t = elementTable{element: make([]uint64, size), place: make([]uint32, size), list: make([]uint32, size), mask: uint64(size - 1)}
	}
	t.number++
	for i, e := range list {
		at := t.slotOf(e)
		if t.list[at] == t.number {
			twice = append(twice, uint32(i))
			continue
		}
		t.element[at], t.place[at], t.list[at] = e, uint32(i), t.number
	}
	return twice
}

func (t *elementTable) slotOf(e uint64) uint64 {
	at := e * 0x9e3779b97f4a7c15 >> 32 & t.mask
	for t.list[at] == t.number && t.element[at] != e {
		at = (at + 1) & t.mask
	}
	return at
}

// move changes the position of an element.
func (t *elementTable) move(e uint64, place uint32) { t.place[t.slotOf(e)] = place }

// find returns the position of an element.
func (t *elementTable) find(e uint64) (place uint32, ok bool) {
	at := t.slotOf(e)
	return t.place[at], t.list[at] == t.number
}

// elementStore holds growing lists. The memory that a moved list leaves is reused.
type elementStore struct {
	free  [32][][]uint64 // by the binary logarithm of the capacity
	chunk []uint64
}

const (
	firstRoom = 2 // as a binary logarithm
	chunkSize = 1 << 16
)

// extend returns a list with more elements appended.
func (a *elementStore) extend(list, more []uint64) []uint64 {
	want := len(list) + len(more)
	if want <= cap(list) {
		return append(list, more...)
	}
	room := firstRoom
	for 1<<room < want {
		room++
	}
	next := append(append(a.take(room), list...), more...)
	if cap(list) > 0 {
		had := firstRoom
		for 1<<had < cap(list) {
			had++
		}
		a.free[had] = append(a.free[had], list[:0])
	}
	return next
}

func (a *elementStore) take(room int) []uint64 {
	size := 1 << room
	if n := len(a.free[room]); n > 0 {
		list := a.free[room][n-1]
		a.free[room] = a.free[room][:n-1]
		return list
	}
	if size >= chunkSize {
		return make([]uint64, 0, size)
	}
	if len(a.chunk) < size {
		a.chunk = make([]uint64, chunkSize)
	}
	list := a.chunk[:0:size]
	a.chunk = a.chunk[size:]
	return list
}

// made returns the writer of a version, or of the last earlier version with a known writer, and that version. None
// means that there is no such writer.
func (c *checker) made(list, version uint32) (writer, at uint32) {
	first := c.first[list]
	for v := version; v > 0; v = c.parent(list, v) {
		if w := c.writer[first+v-1]; w != check.None && w&noEffect == 0 {
			return w & writerMask, v
		}
	}
	return check.None, 0
}

// next returns the writer of the version after the given one, or of the first later version with a known
// writer. If there is none, it returns the node for unread appends, or None.
func (c *checker) next(list, version uint32) uint32 {
	for v := c.first[list] + version; v < c.first[list+1]; v++ {
		if w := c.writer[v]; w != check.None && w&noEffect == 0 {
			return w & writerMask
		}
	}
	if c.later == nil {
		return check.None
	}
	return c.later[list]
}

// length returns the number of known versions of a list.
func (c *checker) length(list uint32) uint32 { return c.first[list+1] - c.first[list] }
