package tpcb

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"stroppy/internal/setting"
)

// size is the number of rows of each kind. Rows have numbers from 0: the branches
// first, then the tellers, then the accounts; in their tables each kind counts from 1.
type size [noKind]uint64

func (s size) rows() uint64 { return s[branch] + s[teller] + s[account] }

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
func (s *size) place(n uint64) (kind, uint64) {
	for k, rows := range s {
		if n < rows {
			return kind(k), n + 1
		}
		n -= rows
	}
	return noKind, 0
}

// number is the inverse of place; false if there is no such row.
func (s *size) number(k kind, id int64) (uint64, bool) {
	if id < 1 || uint64(id) > s[k] {
		return 0, false
	}
	n := uint64(id) - 1
	for _, rows := range s[:k] {
		n += rows
	}
	return n, true
}

// Name returns row n as reports show it, such as "account 17".
func (s *size) Name(n uint64) string {
	k, id := s.place(n)
	if k == noKind {
		return fmt.Sprintf("row %d, which no load makes", n)
	}
	return kindNames[k] + " " + strconv.FormatUint(id, 10)
}

// ratioOf returns scale and ratio of existing rows: the scale is the largest number that divides all three. For
// pgbench's rows it is pgbench's scale.
func (s size) ratioOf() (scale uint64, ratio [noKind]uint64) {
	for _, rows := range s {
		for rows != 0 {
			scale, rows = rows, scale%rows
		}
	}
	for k, rows := range s {
		ratio[k] = rows / scale
	}
	return scale, ratio
}

func ratioText(r [noKind]uint64) string {
	return fmt.Sprintf("%d:%d:%d", r[branch], r[teller], r[account])
}

// parseRatio reads what ratioText has written.
func parseRatio(text string) (r [noKind]uint64, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != len(r) {
		return r, false
	}
	for i, part := range parts {
		n, err := setting.ParseWhole(part)
		if err != nil || n == 0 || n > math.MaxInt32 {
			return r, false
		}
		r[i] = n
	}
	return r, true
}

// Number is the inverse of Name.
func (s *size) Number(name string) (uint64, error) {
	word, digits, _ := strings.Cut(strings.TrimSpace(name), " ")
	id, err := strconv.ParseInt(digits, 10, 64)
	for k := branch; k < noKind; k++ {
		if kindNames[k] != word || err != nil {
			continue
		}
		if n, ok := s.number(k, id); ok {
			return n, nil
		}
		return 0, fmt.Errorf("%s is none of the %d branches, %d tellers and %d accounts of this recording", name, s[branch], s[teller], s[account])
	}
	return 0, fmt.Errorf("%q is no row: one is written such as account 17, teller 3 or branch 1", name)
}
