package lists

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
)

// Storage says how a database keeps a list, and so what its reads show.
type Storage uint8

const (
	// Objects are lists to which the database appends. The order of their elements is its own,
	// so two reads of which neither is the beginning of the other are of no order.
	Objects Storage = iota

	// Values are lists that a client reads and writes whole, with its elements behind. A value
	// shows which one its writer had read. Two that were written over the same one are a lost
	// update and no more: which of them came last is not known.
	Values

	// Pieces are lists of which each element is a row of its own, at the place behind the last
	// one that its transaction saw. A row is never changed, and a read may miss any of them, as
	// one by a predicate does.
	Pieces
	storages
)

var storageNames = [storages]string{"objects", "values", "pieces"}

func (s Storage) String() string { return storageNames[s] }

// ParseStorage reads what String wrote. Of no name lists are objects.
func ParseStorage(name string) (Storage, error) {
	if name == "" {
		return Objects, nil
	}
	if i := slices.Index(storageNames[:], name); i >= 0 {
		return Storage(i), nil
	}
	return Objects, fmt.Errorf("no storage of lists is called %q: one is %v", name, storageNames)
}

// Missing stands in a read of Pieces at a place whose element was not found, although a later
// one was.
const Missing = ^uint64(0)

// tree is a list of Values of which two reads do not fit together. Its versions are numbered
// as they were found, each after its parent, and its elements are those that each added. An
// element may have several versions: a client writes the same element again after a try that
// was rolled back, behind what it has read then.
type tree struct {
	parent []uint32          // of a version, from 1
	first  map[uint64]uint32 // the first version by the element that it added
	again  map[step]uint32   // further versions of the same elements
}

// step is an element that was put behind a version.
type step struct {
	parent  uint32
	element uint64
}

// child returns the version that an element made of another version; 0 is none.
func (t *tree) child(parent uint32, element uint64) uint32 {
	if v := t.first[element]; v != 0 && t.parent[v-1] == parent {
		return v
	}
	return t.again[step{parent, element}]
}

// add adds a version.
func (t *tree) add(parent uint32, element uint64) uint32 {
	t.parent = append(t.parent, parent)
	version := uint32(len(t.parent))
	if t.first[element] == 0 {
		t.first[element] = version
		return version
	}
	if t.again == nil {
		t.again = map[step]uint32{}
	}
	t.again[step{parent, element}] = version
	return version
}

// observe takes what was read of a list, and returns which version it is: in a list that is no
// tree, how long. A read that contradicts another read is nowhere. The reader is None of the end state.
func (c *checker) observe(list, t uint32, read []uint64) uint32 {
	known := c.lists[list]
	both := min(len(known), len(read))
	fits := slices.Equal(known[:both], read[:both])
	switch {
	case c.kept[list] == Pieces && !(fits && !slices.Contains(read[both:], Missing)):
		return c.observePieces(list, t, read)
	case c.trees[list] != nil || !fits && c.kept[list] == Values:
		return c.observeTree(list, read)
	case !fits:
		c.contradicts(finding{list: list, t: t, read: read})
		return nowhere
	}
	if len(read) > len(known) {
		c.lists[list] = c.store.extend(known, read[both:])
	}
	return uint32(len(read))
}

// observeTree takes a value of a list that is a tree from now on.
func (c *checker) observeTree(list uint32, read []uint64) (version uint32) {
	of := c.trees[list]
	if of == nil {
		of = &tree{first: map[uint64]uint32{}}
		for i, e := range c.lists[list] {
			of.add(uint32(i), e)
		}
		if c.trees == nil {
			c.trees = map[uint32]*tree{}
		}
		c.trees[list] = of
	}
	for _, e := range read {
		next := of.child(version, e)
		if next == 0 {
			c.lists[list] = c.store.extend(c.lists[list], []uint64{e})
			next = of.add(version, e)
		}
		version = next
	}
	return version
}

// observePieces takes a read of a list of rows that misses some, or fills in what others missed.
func (c *checker) observePieces(list, t uint32, read []uint64) uint32 {
	known := c.lists[list]
	both := min(len(known), len(read))
	for i, e := range read[:both] {
		if e != Missing && known[i] != Missing && e != known[i] {
			c.contradicts(finding{list: list, t: t, read: read, at: uint32(i + 1)})
			return nowhere
		}
	}
	for i, e := range read[:both] {
		if e != Missing {
			known[i] = e
		}
	}
	if len(read) > both {
		c.lists[list] = c.store.extend(known, read[both:])
	}
	return uint32(len(read))
}

// parent returns the version that another was made of.
func (c *checker) parent(list, version uint32) uint32 {
	if of := c.trees[list]; of != nil {
		return of.parent[version-1]
	}
	return version - 1
}

// contains says that a version of a list has another one in it, or is it.
func (c *checker) contains(list, version, other uint32) bool {
	of := c.trees[list]
	if of == nil || other == nowhere || version == nowhere {
		return other <= version
	}
	for version > other {
		version = of.parent[version-1]
	}
	return version == other
}

// sees says that an operation that read a version of a list found another one in it.
func (c *checker) sees(op, list, version, other uint32) bool {
	if !c.contains(list, version, other) {
		return false
	}
	return !c.misses(op, other)
}

// misses says that a read of Pieces did not find the element at a place that it went past.
func (c *checker) misses(op, place uint32) bool {
	read := c.partial[op]
	return read != nil && place > 0 && int(place) <= len(read) && read[place-1] == Missing
}

// children are the versions of a tree that were made of one of its versions by transactions that took effect.
func (c *checker) children(list, version uint32) (by []uint32) {
	for v, parent := range c.trees[list].parent {
		if parent == version && c.effect(list, uint32(v+1)) != check.None {
			by = append(by, uint32(v+1))
		}
	}
	return by
}

// effect returns who made a version of a list, and took effect; None is nobody.
func (c *checker) effect(list, version uint32) uint32 {
	if version == 0 || version == nowhere {
		return check.None
	}
	w := c.writer[c.first[list]+version-1]
	if w == check.None || w&noEffect != 0 {
		return check.None
	}
	return w & writerMask
}

// content returns the elements of a version of a list.
func (c *checker) content(list, version uint32) []uint64 {
	if c.trees[list] == nil && c.lists[list] != nil {
		return c.lists[list][:version]
	}
	var elements []uint64
	for ; version > 0; version = c.parent(list, version) {
		elements = append(elements, c.elementIn(list, version))
	}
	slices.Reverse(elements)
	return elements
}

// base returns the operation by which a transaction read a list before it appended to it; None
// if it did not, or read several versions of it.
func base(t *Transaction, key uint64) (read *Op) {
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case op.Key != key || op.Kind != Append && op.Kind != Read:
		case op.Kind == Append:
			return read
		case !op.Known:
		case read != nil && !slices.Equal(op.List, read.List):
			return nil
		default:
			read = op
		}
	}
	return nil
}

// written takes what a transaction wrote over the values that it had read, which is known
// whether or not somebody has read it. One of unknown outcome may have written nothing.
func (c *checker) written(n uint32, t *Transaction) {
	for i := range t.Ops {
		first := &t.Ops[i]
		if first.Kind != Append || c.kept[c.list(first.Key)] != Values || slices.ContainsFunc(t.Ops[:i], func(op Op) bool { return op.Kind == Append && op.Key == first.Key }) {
			continue
		}
		from := base(t, first.Key)
		if from == nil {
			continue
		}
		value := append(c.value[:0], from.List...)
		for _, op := range t.Ops[i:] {
			if op.Kind == Append && op.Key == first.Key {
				value = append(value, op.Element)
			}
		}
		c.value = value
		list := c.list(first.Key)
		switch outcome := c.state[n]; outcome {
		case committedState:
			c.observe(list, n, value)
		case unknownState:
			c.unread = append(c.unread, unread{n, check.None, list, slices.Clone(value)})
		}
	}
}
