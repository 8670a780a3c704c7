package registers

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// mostPlaces limits the number of loaded records for the check of scans. mostInPart is the lower limit for
// parts of a history, which are checked frequently.
const (
	mostPlaces = 1 << 27
	mostInPart = 1 << 20
)

// scanned holds the positions of all records in key order, to determine what a scan should have seen.
type scanned struct {
	loaded  []uint64        // sorted
	inserts []insertedPlace // acknowledged inserts, sorted
}

type insertedPlace struct {
	place uint64
	by    *write
}

// newScanned computes the positions until the watch ends.
func (k *checker) newScanned() *scanned {
	p := new(scanned)
	if k.in.Records <= mostPlaces && (!k.in.Part || k.in.Records <= mostInPart) {
		p.loaded = make([]uint64, k.in.Records)
		for n := range p.loaded {
			p.loaded[n] = k.in.Place(uint64(n))
			if k.Watch.Ended() {
				return p
			}
		}
		slices.Sort(p.loaded)
	}
	for _, slab := range k.slabs {
		for i := range slab {
			if w := &slab[i]; w.kind == k.in.Insert && w.outcome == history.Committed {
				p.inserts = append(p.inserts, insertedPlace{k.in.Place(w.n), w})
			}
		}
	}
	slices.SortFunc(p.inserts, func(a, b insertedPlace) int { return cmp.Compare(a.place, b.place) })
	return p
}

// scan checks one scan. The first operation is its start; the others are the returned records in order.
func (v *viewer) scan(r *reading) {
	k := v.k
	if r.judge {
		v.scans++
	}
	found := len(r.Ops)
	start := &r.Ops[0]
	last := k.in.Place(start.Object)
	if start.State == history.Absent {
		found--
		v.gap(r, last, last)
	}
	for i := 1; i < len(r.Ops); i++ {
		op := &r.Ops[i]
		if op.State == history.Foreign {
			continue
		}
		place := k.in.Place(op.Object)
		if place <= last {
			if r.judge {
				v.find(scanOrder, op.Object, func() finding {
					return shows(fact.RegisterScanOrder{Scan: k.member(r.ID, r.Kind), Object: k.Object(op.Object)}, r.ID)
				})
				v.at(scanOrder, r.ended)
			}
			return
		}
		if place > last+1 {
			v.gap(r, last+1, place-1)
		}
		last = place
	}
	switch limit := int(r.Limit); {
	case found > limit && r.judge:
		v.find(scanCount, start.Object, func() finding {
			return shows(fact.RegisterScanCount{Scan: k.member(r.ID, r.Kind), Limit: limit, Found: found}, r.ID)
		})
		v.at(scanCount, r.ended)
	case found < limit:
		v.gap(r, last+1, ^uint64(0))
	}
}

// gap checks the records at positions from to to, inclusive, which a scan did not return.
func (v *viewer) gap(r *reading, from, to uint64) {
	k, p := v.k, v.k.scanned
	if i, _ := slices.BinarySearch(p.loaded, from); r.judge && i < len(p.loaded) && p.loaded[i] <= to {
		n := k.in.At(p.loaded[i])
		v.find(scanLoaded, n, func() finding {
			return shows(fact.RegisterScanLoaded{Scan: k.member(r.ID, r.Kind), Object: k.Object(n)}, r.ID)
		})
		v.at(scanLoaded, r.ended)
	}
	if !r.timed {
		return
	}
	i, _ := slices.BinarySearchFunc(p.inserts, from, func(x insertedPlace, place uint64) int { return cmp.Compare(x.place, place) })
	for ; i < len(p.inserts) && p.inserts[i].place <= to; i++ {
		if w := p.inserts[i].by; w.end < r.began && k.timed(w, r.group) {
			v.find(staleScan, w.n, func() finding {
				return shows(fact.RegisterScanInsert{
					Scan: k.member(r.ID, r.Kind), Object: k.Object(w.n), Insert: k.writer(w),
					Ago: time.Duration(r.began - w.end), AtLeast: k.inexact(),
				}, r.ID, w.id)
			})
			v.at(staleScan, r.ended)
			return
		}
	}
}
