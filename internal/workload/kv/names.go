package kv

import (
	"fmt"
	"strings"

	"stroppy/internal/history"
)

// Names are the records of a recording as people know them.
type Names struct {
	formula *formula
	records uint64
}

// NamesOf returns the names of the records that a history is of.
func NamesOf(h history.Header) *Names {
	return &Names{formula: formulaOf(h), records: h.Accounts}
}

// formulaOf returns the formula of the records that a history is of. Of a header that
// says no sizes it still knows places.
func formulaOf(h history.Header) *formula {
	s, err := shapeOf(h.Keys)
	if err != nil {
		s = shape{leastKey, leastValue, leastValue}
	}
	return newFormula(h.Seed, s)
}

// Name returns record n as reports show it.
func (a *Names) Name(n uint64) string { return a.formula.name(n) }

// Number is the inverse of Name. What stands after the key can be left out.
func (a *Names) Number(name string) (uint64, error) {
	key, _, _ := strings.Cut(name, " ")
	n, ok := a.formula.number([]byte(key), a.formula.newKey())
	if !ok {
		return 0, fmt.Errorf("%q is no key of these records: one looks like %s", name, strings.Fields(a.Name(0))[0])
	}
	if n < MaxRecords && n >= a.records {
		return 0, fmt.Errorf("%s is none of the %d records that were loaded", key, a.records)
	}
	return n, nil
}
