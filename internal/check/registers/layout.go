package registers

import (
	"cmp"
	"slices"

	"stroppy/internal/history"
)

// layOut sorts the numbers of the writes by record and ID, and numbers the written records.
//
// It visits the pieces by descending IDs and fills the numbers of each record from the end. So it compares
// only pieces, no write depends on the load of another, and the places are written sequentially. In a damaged
// history the IDs may not descend; its numbers are sorted afterwards.
func (k *checker) layOut(pieces []piece, extents map[uint64]extent) {
	for _, slab := range k.slabs {
		for i := range slab {
			k.index.count(slab[i].n)
		}
	}
	records := k.index.records()
	k.keys = make([]register, 0, records)
	k.numbers = make([]uint32, k.writers)
	ends := make([]uint32, records) // by record: end of the numbers that are not filled in
	to := uint32(0)
	k.index.number(func(n uint64, writes uint32) uint32 {
		from, number := to, uint32(len(k.keys))
		to += writes
		ends[number] = to
		k.keys = append(k.keys, register{
			before: write{n: n, try: always, end: always, readsEnd: never, readsStart: always, outcome: history.Committed},
			n:      n, from: from, to: to,
		})
		return number
	})
	k.places = newPlaces(extents)
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(k.write(b.from).id, k.write(a.from).id) })
	last, sorted := ^history.ID(0), true
	var keys [seenAtOnce]uint32
	for _, p := range pieces {
		for p.to > p.from {
			from := p.to - min(p.to-p.from, seenAtOnce)
			for number := from; number < p.to; number++ {
				keys[number-from], _ = k.index.of(k.write(number).n)
			}
			for ; p.to > from; p.to-- {
				number, end := p.to-1, &ends[keys[p.to-1-from]]
				*end--
				k.numbers[*end] = number
				id := k.write(number).id
				k.places.set(id, number)
				sorted = sorted && id < last
				last = id
			}
		}
	}
	if !sorted {
		k.sortNumbers()
	}
}

// sortNumbers sorts the numbers of each record's writes.
func (k *checker) sortNumbers() {
	byID := func(x, y uint32) int {
		a, b := k.write(x), k.write(y)
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.try, b.try), cmp.Compare(a.end, b.end))
	}
	for i := range k.keys {
		slices.SortFunc(k.numbers[k.keys[i].from:k.keys[i].to], byID)
	}
}

// write returns the write with a number.
func (k *checker) write(number uint32) *write {
	return &k.slabs[number>>slabBits][number&(slabSize-1)]
}

// keyOf returns the key of a record, or nil if no transaction wrote or tried to write it.
func (k *checker) keyOf(n uint64) *register {
	if at, ok := k.index.of(n); ok {
		return &k.keys[at]
	}
	return nil
}

// appendWrites appends the writes of a key by rank: the initial value first, then the others by ID.
func (k *checker) appendWrites(list []*write, key *register) []*write {
	list = append(list, &key.before)
	for _, number := range k.numbers[key.from:key.to] {
		list = append(list, k.write(number))
	}
	return list
}

// writeOn returns the write of an ID to a record, or nil if there is none. The initial value has ID 0.
func (k *checker) writeOn(n uint64, id history.ID) *write {
	if id == 0 {
		if key := k.keyOf(n); key != nil {
			return &key.before
		}
		return nil
	}
	if number, ok := k.places.get(id); ok {
		if w := k.write(number); w.n == n {
			return w
		}
	}
	return nil
}

// nearly returns the probable write of an ID to a record without reading the write from memory. It returns
// nil if it cannot tell.
func (k *checker) nearly(n uint64, id history.ID) *write {
	if id == 0 {
		if n < uint64(len(k.index.loaded)) && k.index.loaded[n] > 0 {
			return &k.keys[k.index.loaded[n]-1].before
		}
		return nil
	}
	if slot := k.places.slot(id); slot != nil && *slot > 0 {
		return k.write(*slot - 1)
	}
	return nil
}

// touch loads several writes into the cache in parallel. It returns a sum so that the compiler keeps the
// loads.
func touch(list []*write) (sum uint64) {
	for _, w := range list {
		if w != nil {
			sum += w.n
		}
	}
	return sum
}
