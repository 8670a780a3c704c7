package kv

import (
	"strconv"

	"stroppy/internal/workload/dataset"
)

// kind is what the records are to a database.
var kind = dataset.Kind{
	Workload: Name, Noun: "record set", Things: "records", Make: "stroppy run kv", Schema: 1,
	Table: "stroppy_kv_meta", Prefix: "stroppy-kv/meta/",
}

// What the metadata of the records keep besides what all metadata have.
const (
	factKeySize   = "key_size"   // bytes
	factValueLow  = "value_low"  // bytes
	factValueHigh = "value_high" // bytes
	facts         = 3
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// factsOf returns what the metadata of records of this shape keep.
func factsOf(s shape) map[string]string {
	return map[string]string{factKeySize: decimal(s.key), factValueLow: decimal(s.low), factValueHigh: decimal(s.high)}
}

// shapeOf is the inverse of factsOf.
func shapeOf(facts map[string]string) (s shape, err error) {
	number := func(name string, least, most uint64) uint64 {
		n, failed := strconv.ParseUint(facts[name], 10, 64)
		if (failed != nil || n < least || n > most) && err == nil {
			err = kind.Altered(name, facts[name])
		}
		return n
	}
	s.key = number(factKeySize, leastKey, mostKey)
	s.low = number(factValueLow, leastValue, mostValue)
	s.high = number(factValueHigh, max(s.low, leastValue), mostValue)
	return s, err
}

func (c *Config) shape() shape { return shape{c.KeySize, c.ValueLow, c.ValueHigh} }

// take takes over what the database says about the records in it.
func (w *Workload) take(m *dataset.Metadata) error {
	s, err := shapeOf(m.Facts)
	if err == nil {
		w.shape, w.formula = s, newFormula(m.Seed, s)
	}
	return err
}

// fits says whether the records that were found can be used as configured.
func (w *Workload) fits(m *dataset.Metadata) error {
	s, err := shapeOf(m.Facts)
	c := &w.config
	switch {
	case err != nil:
		return err
	case c.KeySize != 0 && c.KeySize != s.key:
		return dataset.MismatchErrorf("the %s in this database has keys of %d bytes, and %d are asked for: leave the size out, or run `%s`", kind.Noun, s.key, c.KeySize, kind.Make)
	case c.ValueHigh != 0 && (c.ValueLow != s.low || c.ValueHigh != s.high):
		return dataset.MismatchErrorf("the %s in this database has values of %d..%d bytes, and %d..%d are asked for: leave the size out, or run `%s`", kind.Noun, s.low, s.high, c.ValueLow, c.ValueHigh, kind.Make)
	}
	return nil
}
