package memory

import (
	"iter"
	"slices"
	"sort"
)

// runLength is the most records that one run of an index holds.
const runLength = 512

// index keeps records in the order of their keys: sorted runs, each before the
// next and none empty, which split when they are full. An insert moves at most one run.
type index struct {
	runs [][]*record
}

// insert adds a record whose key is not there yet.
func (x *index) insert(r *record) {
	if len(x.runs) == 0 {
		x.runs = [][]*record{{r}}
		return
	}
	i := min(x.run(r.key), len(x.runs)-1)
	run := slices.Insert(x.runs[i], position(x.runs[i], r.key), r)
	x.runs[i] = run
	if len(run) == runLength {
		x.runs[i] = slices.Clone(run[:runLength/2])
		x.runs = slices.Insert(x.runs, i+1, slices.Clone(run[runLength/2:]))
	}
}

// from yields the records with key ≥ from, in order.
func (x *index) from(from string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := x.run(from); i < len(x.runs); i++ {
			for _, r := range x.runs[i][position(x.runs[i], from):] {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// run returns the first run that ends at key or after it.
func (x *index) run(key string) int {
	return sort.Search(len(x.runs), func(i int) bool {
		run := x.runs[i]
		return run[len(run)-1].key >= key
	})
}

// position returns the place of the first record in run with a key ≥ key.
func position(run []*record, key string) int {
	return sort.Search(len(run), func(i int) bool { return run[i].key >= key })
}
