package lists

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
)

// Storage states how a database keeps a list, which determines what reads show.
type Storage uint8

const (
	// Objects are lists to which the database appends. The database orders the elements, so if neither of two
	// reads is a prefix of the other, no order explains them.
	Objects Storage = iota

	// Values are lists that a client reads and writes as a whole, with its elements appended. A value shows
	// which value its writer had read. Two values that overwrote the same one are a lost update; which of
	// them was last is not known.
	Values

	// Pieces are lists in which each element is a row of its own, placed after the last row that its
	// transaction saw. A row never changes. A read may miss rows, like a read by predicate.
	Pieces
	storages
)

var storageNames = [storages]string{"objects", "values", "pieces"}

func (s Storage) String() string { return storageNames[s] }

// ParseStorage parses the result of String. An empty name means Objects.
func ParseStorage(name string) (Storage, error) {
	if name == "" {
		return Objects, nil
	}
	if i := slices.Index(storageNames[:], name); i >= 0 {
		return Storage(i), nil
	}
	return Objects, fmt.Errorf("unknown storage of lists %q: use one of %v", name, storageNames)
}

// Missing marks a position in a read of Pieces whose element was not found, although a later one was.
const Missing = ^uint64(0)

// tree is a list of Values with two reads that do not fit together. Its versions are numbered as they were
// found, each after its parent; the elements are those that each version added. An element may have several
// versions: after a rolled-back try, a client writes the same element again after what it then reads.
type tree struct {
	parent []uint32          // by version, from 1
	first  map[uint64]uint32 // the first version for each added element
	again  map[step]uint32   // further versions for the same elements
}

// step is an element that was appended to a version.
type step struct {
	parent  uint32
	element uint64
}

// child returns the version that results from appending an element to another version; 0 means none.
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

// observe records a read of a list and returns its version, which is the length unless the list is a tree. A
// read that contradicts another one is nowhere. The reader is None for the end state.
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

// observeTree records a value of a list that is, or becomes, a tree.
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

// observePieces records a read of a list of rows that misses some rows, or adds rows that others missed.
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

// parent returns the version from which another one was made.
func (c *checker) parent(list, version uint32) uint32 {
	if of := c.trees[list]; of != nil {
		return of.parent[version-1]
	}
	return version - 1
}

// contains reports whether a version of a list includes another one or equals it.
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

// sees reports whether an operation that read a version of a list also saw another version.
func (c *checker) sees(op, list, version, other uint32) bool {
	if !c.contains(list, version, other) {
		return false
	}
	return !c.misses(op, other)
}

// misses reports whether a read of Pieces did not find the element at a position that it passed.
func (c *checker) misses(op, place uint32) bool {
	read := c.partial[op]
	return read != nil && place > 0 && int(place) <= len(read) && read[place-1] == Missing
}

// children returns the effective transactions that made versions of a tree from one of its versions.
func (c *checker) children(list, version uint32) (by []uint32) {
	for v, parent := range c.trees[list].parent {
		if parent == version && c.effect(list, uint32(v+1)) != check.None {
			by = append(by, uint32(v+1))
		}
	}
	return by
}

// effect returns the writer of a version if it took effect, and None otherwise.
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

// base returns the read of a list before the transaction's append to it. It returns nil if there is none, or
// if several versions were read.
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

// written records the values that a transaction wrote over what it had read. They are known even if they were
// not read. A transaction of unknown outcome may have written nothing.
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
