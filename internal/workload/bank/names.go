package bank

import (
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/history"
)

// Names are the accounts of a recorded bank as people know them.
type Names struct {
	formula  formula
	accounts uint64
}

// NamesOf returns the names of the accounts of the bank that a history is of.
func NamesOf(h history.Header) *Names {
	return &Names{formula: newFormula(h.Seed), accounts: h.Accounts}
}

// Name returns account n as reports show it.
func (a *Names) Name(n uint64) string { return a.formula.name(n) }

// Number is the inverse of Name. What stands after the BAN can be left out, and
// so can its leading zeros.
func (a *Names) Number(name string) (uint64, error) {
	text, _, _ := strings.Cut(name, " ")
	bic, digits, ok := strings.Cut(text, "/")
	number, err := strconv.ParseInt(digits, 10, 64)
	key, known := keyOf([]byte(bic), number)
	if !ok || err != nil || !known {
		return 0, fmt.Errorf("%q is no account: one is written as BIC/BAN, such as %s", name, strings.Fields(a.Name(0))[0])
	}
	n := a.formula.number(key)
	if n >= a.accounts {
		return 0, fmt.Errorf("%s is none of the %d accounts of this bank", text, a.accounts)
	}
	return n, nil
}
