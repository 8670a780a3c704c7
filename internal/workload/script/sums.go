package script

import (
	"strconv"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/script"
)

// summing captures what a client's transactions add to the sums of invariants. A nil summing sums nothing.
type summing struct {
	slots   []int    // of the variables
	amounts []amount // of the transaction that writes
	set     uint64   // the variables that this execution of the script has set, as bits
	saved   uint64   // the same at the beginning of the current transaction of the script
	wrote   bool     // the current transaction has written
	taken   bool     // amounts holds what the transaction adds, if it commits
	done    bool     // it is committed
}

// amount is an exact decimal: ones, and units of 10^-18.
type amount struct{ whole, fraction int64 }

func newSumming(slots []int) *summing {
	if len(slots) == 0 {
		return nil
	}
	return &summing{slots: slots, amounts: make([]amount, len(slots))}
}

// assigned records that the script has set a variable.
func (s *summing) assigned(slot int) {
	if s == nil {
		return
	}
	for i, own := range s.slots {
		if own == slot {
			s.set |= 1 << i
		}
	}
}

// next begins a transaction of the history. It is the first one of a script, unless the script continues.
func (s *summing) next(continues bool) {
	if s == nil {
		return
	}
	if !continues {
		s.set = 0
	}
	s.saved, s.done, s.taken, s.wrote = s.set, false, false, false
}

// begin begins a try at the current transaction.
func (s *summing) begin() {
	if s != nil {
		s.set, s.wrote, s.taken = s.saved, false, s.taken && s.done
	}
}

// ended ends a transaction of the script.
func (s *summing) ended(committed bool) {
	if s != nil {
		s.saved, s.done, s.wrote = s.set, s.done || committed && s.wrote, false
	}
}

// writes records a statement that writes.
func (s *summing) writes() {
	if s != nil {
		s.wrote = true
	}
}

// take captures the variables of a transaction that is about to commit.
func (s *summing) take(m *script.Machine) error {
	if s == nil || !s.wrote {
		return nil
	}
	for i, slot := range s.slots {
		s.amounts[i] = amount{}
		if s.set>>i&1 == 0 {
			continue
		}
		var ok bool
		if s.amounts[i], ok = exact(&m.Vars[slot]); !ok {
			return db.Fatalf("sum the variable for an invariant",
				"its value %s is no whole number or decimal: sum cents, for example", m.Vars[slot].Append(nil))
		}
	}
	s.taken = true
	return nil
}

// exact returns a value as an exact decimal. NULL adds nothing.
func exact(v *script.Value) (amount, bool) {
	switch v.Kind {
	case script.Integer:
		return amount{whole: v.Int}, true
	case script.Null:
		return amount{}, true
	case script.Text:
		return parseAmount(string(v.Text))
	}
	return amount{}, false
}

// fractionDigits is the number of digits of amount.fraction.
const fractionDigits = 18

func parseAmount(text string) (a amount, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	var err error
	if a.whole, err = strconv.ParseInt(whole, 10, 64); err != nil || len(fraction) > fractionDigits {
		return a, false
	}
	if strings.Trim(fraction, "0123456789") != "" {
		return a, false
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		a.fraction, err = strconv.ParseInt(fraction+strings.Repeat("0", fractionDigits-len(fraction)), 10, 64)
	}
	if strings.HasPrefix(whole, "-") {
		a.fraction = -a.fraction
	}
	return a, err == nil
}

// appendOps appends what the transaction adds to the sums.
func (s *summing) appendOps(ops []history.Op) []history.Op {
	if s == nil || !s.taken {
		return ops
	}
	for i, a := range s.amounts {
		for k, n := range [2]int64{a.whole, a.fraction} {
			if n != 0 {
				ops = append(ops, history.Op{Object: sumObject + uint64(2*i+k), Write: true, Amount: n})
			}
		}
	}
	return ops
}
