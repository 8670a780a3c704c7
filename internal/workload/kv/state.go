package kv

import (
	"context"
	"strconv"
	"time"

	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kind is what the records are to a database.
var kind = dataset.Kind{
	Noun: "record set", Things: things, Make: "stroppy run kv", Schema: 1, Table: "stroppy_kv_meta", Prefix: "stroppy-kv/meta/",
}

const things = "records"

// What the note of the records keeps beside what every note has.
const (
	factKeySize   = "key_size"   // bytes
	factValueLow  = "value_low"  // bytes
	factValueHigh = "value_high" // bytes
	facts         = 3
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// factsOf returns what the note of records of this shape keeps.
func factsOf(s shape) map[string]string {
	return map[string]string{factKeySize: decimal(s.key), factValueLow: decimal(s.low), factValueHigh: decimal(s.high)}
}

// shapeOf is the inverse of factsOf; the name of what makes no sense comes with
// false.
func shapeOf(facts map[string]string) (s shape, wrong string, ok bool) {
	for _, fact := range []struct {
		name        string
		least, most uint64
		to          *uint64
	}{
		{factKeySize, leastKey, mostKey, &s.key}, {factValueLow, leastValue, mostValue, &s.low}, {factValueHigh, leastValue, mostValue, &s.high},
	} {
		n, err := strconv.ParseUint(facts[fact.name], 10, 64)
		if err != nil || n < fact.least || n > fact.most {
			return s, fact.name, false
		}
		*fact.to = n
	}
	return s, factValueHigh, s.low <= s.high
}

func (c *Config) shape() shape { return shape{c.KeySize, c.ValueLow, c.ValueHigh} }

// Load makes the records. Those of this program that are there already are
// replaced; of an interrupted load of the same records it keeps what is there. What
// somebody else made is never touched.
func (w *Workload) Load(ctx context.Context, progress func(done, total uint64)) (workload.Loaded, error) {
	started := time.Now()
	kept, err := w.set.Load(ctx, progress)
	if err != nil {
		return workload.Loaded{}, err
	}
	return workload.Loaded{Accounts: w.config.Records, Things: things, Took: time.Since(started), Resumed: kept}, nil
}

// OnReplace has tell called with one sentence before a load replaces records that
// are loaded.
func (w *Workload) OnReplace(tell func(what string)) { w.want.Replacing = tell }

// Replaced returns a *dataset.StateError if the records in the database are now of
// another load than those that this workload is attached to.
func (w *Workload) Replaced(ctx context.Context) error { return w.set.Replaced(ctx) }

// Attach finds the records that an earlier load has left and takes the next run
// number. It returns a *dataset.StateError if there are none that can be used and a
// *dataset.MismatchError if they are others than those that were asked for.
func (w *Workload) Attach(ctx context.Context) (workload.Loaded, error) {
	if err := w.set.Attach(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return w.take()
}

// Look finds the records as Attach does, and only reads.
func (w *Workload) Look(ctx context.Context) (workload.Loaded, error) {
	if err := w.set.Look(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return w.take()
}

// take takes over what the database says about the records in it.
func (w *Workload) take() (workload.Loaded, error) {
	n := w.set.Note()
	s, wrong, ok := shapeOf(n.Facts)
	if !ok {
		return workload.Loaded{}, kind.Altered(wrong, n.Facts[wrong])
	}
	w.shape, w.records, w.run, w.load = s, n.Size, w.set.Run(), n.Load
	w.formula = newFormula(n.Seed, s)
	return workload.Loaded{Accounts: w.records, Things: things}, nil
}

// fits says whether the records that were found can be driven as configured.
func (w *Workload) fits(n *dataset.Note) error {
	s, wrong, ok := shapeOf(n.Facts)
	c := &w.config
	switch {
	case !ok:
		return kind.Altered(wrong, n.Facts[wrong])
	case c.KeySize != 0 && c.KeySize != s.key:
		return dataset.MismatchErrorf("the %s in this database has keys of %d bytes, and %d are asked for: leave the size out, or run `%s`", kind.Noun, s.key, c.KeySize, kind.Make)
	case c.ValueHigh != 0 && (c.ValueLow != s.low || c.ValueHigh != s.high):
		return dataset.MismatchErrorf("the %s in this database has values of %d..%d bytes, and %d..%d are asked for: leave the size out, or run `%s`", kind.Noun, s.low, s.high, c.ValueLow, c.ValueHigh, kind.Make)
	}
	return nil
}
