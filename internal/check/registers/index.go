package registers

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// index numbers the records that were written: those of the load by an array, of 4 bytes a
// record of the load, and all others by a table. Before number it counts their writes.
type index struct {
	loaded []uint32 // of each record of the load: its number and one, 0 if it was not written
	others table
}

// mostLoaded is for how many records of the load there is an array.
const mostLoaded = 1 << 28

// count counts a write of a record.
func (x *index) count(n uint64) {
	if n < uint64(len(x.loaded)) {
		x.loaded[n]++
	} else {
		x.others.count(n)
	}
}

// records returns how many records have been counted.
func (x *index) records() int {
	records := x.others.used
	for _, writes := range x.loaded {
		if writes > 0 {
			records++
		}
	}
	return records
}

// number calls do with each record, in their order, and how many writes it had, for its number.
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

// of returns the number of a record; false if it was not written.
func (x *index) of(n uint64) (uint32, bool) {
	var v uint32
	if n < uint64(len(x.loaded)) {
		v = x.loaded[n]
	} else if x.others.used > 0 {
		v = *x.others.at(n)
	}
	return v - 1, v > 0
}

// table is a hash table with open addressing and linear probing. A value of 0 is none.
type table struct {
	keys   []uint64
	values []uint32
	used   int
}

// at returns where the value of a key stands, or would stand in a table that has room.
func (t *table) at(key uint64) *uint32 {
	mask := uint64(len(t.keys) - 1)
	i := check.Mix(key) & mask
	for t.values[i] != 0 && t.keys[i] != key {
		i = (i + 1) & mask
	}
	return &t.values[i]
}

// count adds one to the value of a key.
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

// places are the numbers of the writes by their ids. A client's sequence numbers follow each
// other, so it is an array a client, of 4 bytes a transaction.
type places struct {
	runs   []placesOfRun
	sparse map[history.ID]uint32
	twice  bool // an id has several writes: the history is damaged, and of some no write is found
}

type placesOfRun struct {
	run     uint64
	clients []placesOfClient // by number
}

type placesOfClient struct {
	first uint64
	at    []uint32 // from the sequence number first on; the number and one, 0 is none
}

// extent is which sequence numbers the transactions of one client have.
type extent struct{ first, last, count, sum uint64 }

// add adds the numbers of another extent.
func (e *extent) add(o extent) {
	if e.count == 0 {
		*e = o
		return
	}
	e.first, e.last, e.count, e.sum = min(e.first, o.first), max(e.last, o.last), e.count+o.count, e.sum+o.sum
}

// whole reports whether these are the numbers from 1 on, or from 0, each once, as far as their
// count and their sum show it.
func (e *extent) whole() bool {
	first := min(1, e.first)
	return e.count == e.last-first+1 && e.sum == e.last*(e.last+1)/2
}

// newPlaces makes room for what has these extents, by run and client.
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

// slot returns where the number of an id's write is kept; nil if there is no array for it.
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
