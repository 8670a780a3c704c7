package registers

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// index numbers the records that were written. It uses an array with 4 bytes for each record of the load, and
// a table for all other records. Before the call of number, it counts their writes.
type index struct {
	loaded []uint32 // by record of the load: its number plus one; 0: not written
	others table
}

// mostLoaded is the largest number of records of the load for which an array is used.
const mostLoaded = 1 << 28

// count counts a write of a record.
func (x *index) count(n uint64) {
	if n < uint64(len(x.loaded)) {
		x.loaded[n]++
	} else {
		x.others.count(n)
	}
}

// records returns the number of counted records.
func (x *index) records() int {
	records := x.others.used
	for _, writes := range x.loaded {
		if writes > 0 {
			records++
		}
	}
	return records
}

// number calls do for each record in order, with its number of writes. do returns the record's number.
func (x *index) number(do func(n uint64, writes uint32) uint32) {
	for n, writes := range x.loaded {
		if writes > 0 {
			x.loaded[n] = do(uint64(n), writes) + 1
		}
	}
	list := make([]uint64, 0, x.others.used)
	for i, v := range x.others.values {
		if v > 0 {
			list = append(list, x.others.keys[i])
		}
	}
	slices.Sort(list)
	for _, n := range list {
		v := x.others.at(n)
		*v = do(n, *v) + 1
	}
}

// of returns the number of a record. It reports false if the record was not written.
func (x *index) of(n uint64) (uint32, bool) {
	var v uint32
	if n < uint64(len(x.loaded)) {
		v = x.loaded[n]
	} else if x.others.used > 0 {
		v = *x.others.at(n)
	}
	return v - 1, v > 0
}

// table is a hash table with open addressing and linear probing. The value 0 marks an empty slot.
type table struct {
	keys   []uint64
	values []uint32
	used   int
}

// at returns the slot of a key. For a missing key it returns the slot for an insertion; the table must have
// room.
func (t *table) at(key uint64) *uint32 {
	mask := uint64(len(t.keys) - 1)
	i := check.Mix(key) & mask
	for t.values[i] != 0 && t.keys[i] != key {
		i = (i + 1) & mask
	}
	return &t.values[i]
}

// count increments the value of a key.
func (t *table) count(key uint64) {
	if 2*t.used >= len(t.keys) {
		t.grow()
	}
	mask := uint64(len(t.keys) - 1)
	i := check.Mix(key) & mask
	for t.values[i] != 0 && t.keys[i] != key {
		i = (i + 1) & mask
	}
	if t.values[i] == 0 {
		t.keys[i] = key
		t.used++
	}
	t.values[i]++
}

func (t *table) grow() {
	old := *t
	t.keys, t.values = make([]uint64, max(1024, 2*len(old.keys))), make([]uint32, max(1024, 2*len(old.keys)))
	mask := uint64(len(t.keys) - 1)
	for k, v := range old.values {
		if v == 0 {
			continue
		}
		i := check.Mix(old.keys[k]) & mask
		for t.values[i] != 0 {
			i = (i + 1) & mask
		}
		t.keys[i], t.values[i] = old.keys[k], v
	}
}

// places maps IDs to the numbers of their writes. Sequence numbers of a client are consecutive, so it uses
// one array for each client, with 4 bytes for each transaction.
type places struct {
	runs   []placesOfRun
	sparse map[history.ID]uint32
	twice  bool // an ID has several writes: the history is damaged, and some writes are not found
}

type placesOfRun struct {
	run     uint64
	clients []placesOfClient // by number
}

type placesOfClient struct {
	first uint64
	at    []uint32 // by sequence number, from first: the number plus one; 0: none
}

// extent summarizes the sequence numbers of one client's transactions.
type extent struct{ first, last, count, sum uint64 }

// add merges another extent.
func (e *extent) add(o extent) {
	if e.count == 0 {
		*e = o
		return
	}
	e.first, e.last, e.count, e.sum = min(e.first, o.first), max(e.last, o.last), e.count+o.count, e.sum+o.sum
}

// whole reports whether the count and the sum agree with consecutive numbers from 1, or from 0.
func (e *extent) whole() bool {
	first := min(1, e.first)
	return e.count == e.last-first+1 && e.sum == e.last*(e.last+1)/2
}

// newPlaces allocates places for the extents, which are keyed by run and client.
func newPlaces(extents map[uint64]extent) *places {
	p := new(places)
	for key, e := range extents {
		if e.last-e.first >= 4*e.count+1024 {
			continue // no client numbers its transactions like this
		}
		run, client := history.ID(key<<history.SequenceBits).Run(), history.ID(key<<history.SequenceBits).Client()
		i := slices.IndexFunc(p.runs, func(r placesOfRun) bool { return r.run == run })
		if i < 0 {
			i = len(p.runs)
			p.runs = append(p.runs, placesOfRun{run: run})
		}
		r := &p.runs[i]
		if client >= uint64(len(r.clients)) {
			r.clients = append(r.clients, make([]placesOfClient, client+1-uint64(len(r.clients)))...)
		}
		r.clients[client] = placesOfClient{e.first, make([]uint32, e.last-e.first+1)}
	}
	return p
}

// slot returns the slot for the number of an ID's write, or nil if the ID has no array.
func (p *places) slot(id history.ID) *uint32 {
	run, client := id.Run(), id.Client()
	for i := range p.runs {
		r := &p.runs[i]
		if r.run != run || client >= uint64(len(r.clients)) {
			continue
		}
		c := &r.clients[client]
		if k := id.Sequence() - c.first; k < uint64(len(c.at)) {
			return &c.at[k]
		}
	}
	return nil
}

func (p *places) set(id history.ID, at uint32) {
	if slot := p.slot(id); slot != nil {
		p.twice = p.twice || *slot != 0
		*slot = at + 1
		return
	}
	if p.sparse == nil {
		p.sparse = map[history.ID]uint32{}
	}
	_, there := p.sparse[id]
	p.twice = p.twice || there
	p.sparse[id] = at
}

func (p *places) get(id history.ID) (at uint32, ok bool) {
	if slot := p.slot(id); slot != nil {
		return *slot - 1, *slot != 0
	}
	at, ok = p.sparse[id]
	return at, ok
}
