package registers

import (
	"cmp"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// mostPlaces is how many records of the load can be held against scans.
const mostPlaces = 1 << 27

// places are the places of all records in the order of their keys, to say what a scan
// should have seen. They are made for the first scan.
type places struct {
	k       *checker
	made    bool
	loaded  []uint64 // in order
	inserts []insertedPlace
}

// insertedPlace is a record of an acknowledged insert.
type insertedPlace struct {
	place uint64
	n     uint64
	end   int64 // when it was acknowledged
	id    history.ID
	group int
}

func (k *checker) newPlaces() *places { return &places{k: k} }

func (p *places) fill() {
	p.made = true
	k := p.k
	if k.in.Records > mostPlaces {
		k.unplaced = fmt.Sprintf("whether scans are complete is not looked at where the load made more than %d records", mostPlaces)
	} else {
		p.loaded = make([]uint64, k.in.Records)
		for n := range p.loaded {
			p.loaded[n] = k.in.Place(uint64(n))
			if k.watch.Ended() {
				return
			}
		}
		slices.Sort(p.loaded)
	}
	for i := range k.writes {
		if w := &k.writes[i]; w.kind == history.Insert && w.outcome == history.Committed {
			p.inserts = append(p.inserts, insertedPlace{k.in.Place(w.n), w.n, w.end, w.id, k.clocks[w.source].group})
		}
	}
	slices.SortFunc(p.inserts, func(a, b insertedPlace) int { return cmp.Compare(a.place, b.place) })
}

// scan holds one scan against what was there. The first operation is its start; the
// others are what came after that, in the order in which it came.
func (p *places) scan(source int, tx *history.Transaction, g int) {
	k := p.k
	if !p.made {
		p.fill()
	}
	judge := g == 0
	timed := k.clocks[source].group == g
	if judge {
		k.scans++
	}
	found := 0
	start := &tx.Ops[0]
	last := k.in.Place(start.Object)
	if start.State == history.Absent {
		p.gap(source, tx, last, last, judge, timed)
	} else {
		found++
	}
	for i := 1; i < len(tx.Ops); i++ {
		op := &tx.Ops[i]
		found++
		if op.State == history.Foreign {
			continue
		}
		place := k.in.Place(op.Object)
		if place <= last {
			if judge {
				id, n := tx.ID, op.Object
				k.hole.add(k, Scans, "", id, n, func() string {
					return fmt.Sprintf("%v brought %s after a key that is the same or comes later", id, k.in.Name(n))
				})
			}
			return
		}
		if place > last+1 {
			p.gap(source, tx, last+1, place-1, judge, timed)
		}
		last = place
	}
	switch limit := int(start.Amount); {
	case found > limit && judge:
		id := tx.ID
		k.hole.add(k, Scans, "", id, start.Object, func() string {
			return fmt.Sprintf("%v asked for %s and was given %d", id, check.Plural(uint64(limit), "record"), found)
		})
	case found < limit:
		p.gap(source, tx, last+1, ^uint64(0), judge, timed)
	}
}

// gap says what was at the places from to to, both included, of which a scan brought
// nothing.
func (p *places) gap(source int, tx *history.Transaction, from, to uint64, judge, timed bool) {
	k, id := p.k, tx.ID
	if i, _ := slices.BinarySearch(p.loaded, from); judge && i < len(p.loaded) && p.loaded[i] <= to {
		place := p.loaded[i]
		k.hole.add(k, Scans, "", id, 0, func() string {
			return fmt.Sprintf("%v lacks %s, which the load had made", id, k.in.Name(p.recordAt(place)))
		})
	}
	if !timed {
		return
	}
	began := k.start(source, tx.Try)
	i, _ := slices.BinarySearchFunc(p.inserts, from, func(x insertedPlace, place uint64) int { return cmp.Compare(x.place, place) })
	for ; i < len(p.inserts) && p.inserts[i].place <= to; i++ {
		if x := p.inserts[i]; x.end < began && x.group == k.clocks[source].group {
			k.staleScan.add(k, Scans, "stale scan", id, x.n, func() string {
				return fmt.Sprintf("%v lacks %s, whose insert %v had been acknowledged %.3g ms before it began", id, k.in.Name(x.n), x.id, float64(began-x.end)/1e6)
			}, x.id)
			return
		}
	}
}

// recordAt is the number of the load's record at a place. It is asked for only to
// tell a violation.
func (p *places) recordAt(place uint64) uint64 {
	for n := range p.k.in.Records {
		if p.k.in.Place(n) == place {
			return n
		}
	}
	return 0
}
