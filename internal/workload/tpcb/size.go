package tpcb

import (
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/history"
)

// size is how many rows there are. Rows have numbers from 0: the branches first,
// then the tellers, then the accounts; in their tables each kind counts from 1.
type size struct{ branches, tellers, accounts uint64 }

func (s size) rows() uint64 { return s.branches + s.tellers + s.accounts }

// kind is one of the three kinds of rows.
type kind uint8

const (
	branch kind = iota
	teller
	account
	noKind
)

var kindNames = [...]string{"branch", "teller", "account"}

// place returns the kind of a row and its id in its table, from 1.
func (s size) place(n uint64) (kind, uint64) {
	switch {
	case n < s.branches:
		return branch, n + 1
	case n < s.branches+s.tellers:
		return teller, n - s.branches + 1
	case n < s.rows():
		return account, n - s.branches - s.tellers + 1
	}
	return noKind, 0
}

// number is the inverse of place; false if there is no such row.
func (s size) number(k kind, id int64) (uint64, bool) {
	first, count := uint64(0), s.branches
	switch k {
	case teller:
		first, count = s.branches, s.tellers
	case account:
		first, count = s.branches+s.tellers, s.accounts
	}
	if id < 1 || uint64(id) > count {
		return 0, false
	}
	return first + uint64(id) - 1, true
}

func (s size) name(n uint64) string {
	k, id := s.place(n)
	if k == noKind {
		return fmt.Sprintf("row %d, which no load makes", n)
	}
	return kindNames[k] + " " + strconv.FormatUint(id, 10)
}

// ratioOf returns scale and ratio of rows that are there: the scale is the largest
// number that divides all three. Of pgbench's rows it is pgbench's.
func (s size) ratioOf() (scale uint64, ratio [3]uint64) {
	scale = greatestDivisor(greatestDivisor(s.branches, s.tellers), s.accounts)
	return scale, [3]uint64{s.branches / scale, s.tellers / scale, s.accounts / scale}
}

func greatestDivisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ratioText(r [3]uint64) string { return fmt.Sprintf("%d:%d:%d", r[0], r[1], r[2]) }

// parseRatio reads what ratioText has written.
func parseRatio(text string) (r [3]uint64, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != len(r) {
		return r, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || n == 0 {
			return r, false
		}
		r[i] = n
	}
	return r, true
}

// Names are the rows of a recording as people know them.
type Names struct{ size size }

// NamesOf returns the names of the rows that a history is of.
func NamesOf(h history.Header) *Names {
	f, err := sizeFacts(h.Keys, h.Accounts)
	if err != nil {
		return new(Names) // of a header that says nothing every row is unknown
	}
	return &Names{f.size}
}

// Name returns row n as reports show it, such as "account 17".
func (a *Names) Name(n uint64) string { return a.size.name(n) }

// Number is the inverse of Name.
func (a *Names) Number(name string) (uint64, error) {
	word, digits, _ := strings.Cut(strings.TrimSpace(name), " ")
	id, err := strconv.ParseInt(digits, 10, 64)
	for k := branch; k < noKind; k++ {
		if kindNames[k] != word || err != nil {
			continue
		}
		if n, ok := a.size.number(k, id); ok {
			return n, nil
		}
		return 0, fmt.Errorf("%s is none of the %d branches, %d tellers and %d accounts of this recording", name, a.size.branches, a.size.tellers, a.size.accounts)
	}
	return 0, fmt.Errorf("%q is no row: one is written such as account 17, teller 3 or branch 1", name)
}
