package memory

import (
	"iter"
	"slices"
	"sort"
)

// runLength is the largest number of records in one run of an index.
const runLength = 512

// index keeps records in the order of their keys, as sorted runs that are never empty and split when they are full.
// An insert moves at most one run.
type index struct {
	runs [][]*record
}

// insert adds a record with a new key.
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

// within yields the records with a key in the range, in order.
func (x *index) within(r span) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := x.run(r.from); i < len(x.runs); i++ {
			for _, record := range x.runs[i][position(x.runs[i], r.from):] {
				if record.key >= r.to || !yield(record) {
					return
				}
			}
		}
	}
}

// run returns the index of the first run whose last key is ≥ key.
func (x *index) run(key string) int {
	return sort.Search(len(x.runs), func(i int) bool {
		run := x.runs[i]
		return run[len(run)-1].key >= key
	})
}

// position returns the index of the first record in run with a key ≥ key.
func position(run []*record, key string) int {
	return sort.Search(len(run), func(i int) bool { return run[i].key >= key })
}
