package totals

import (
	"fmt"
	"slices"
	"strings"
	"stroppy/internal/check"
)

// readRows holds every end balance against what its row is to hold.
func (t *groups) readRows() (problem error) {
	b := t.balances
	if t.in.End == nil {
		return nil
	}
	for a := range check.Each(&b.Watch, "the end state's rows", t.in.End.Objects(), &problem) {
		t.rows++
		t.identity += check.Mix(a.N + 1)
		want, loose := int64(0), false
		if s := b.slots.find(a.N); s != nil {
			want, loose = s.sum, s.broken && t.looses > 0
		}
		if a.Value == want {
			continue
		}
		t.wrongs++
		if loose {
			t.vague++
		}
		w := wrongRow{a, want}
		if b.Input.OnViolation != nil {
			b.Report(check.Ledger, "", 0, b.Input.Name(a.N), t.describe(w))
		}
		// Those that nothing explains come first.
		if !loose && t.vague > 0 && len(t.wrong) == check.Shown {
			t.wrong = t.wrong[:check.Shown-1]
		}
		if len(t.wrong) < check.Shown {
			t.wrong = append(t.wrong, w)
		}
	}
	return problem
}

func (t *groups) describe(w wrongRow) string {
	return fmt.Sprintf("%s holds %d, and its opening and the amounts that it got make %d (%+d off).",
		t.in.Name(w.row.N), w.row.Value, w.want, w.row.Value-w.want)
}

// rowsMissing says what is wrong with the set of rows; empty if nothing.
func (t *groups) rowsMissing() string {
	identity, known := t.balances.wholeIdentity()
	switch {
	case !known:
		return ""
	case t.rows != t.balances.accounts:
		return fmt.Sprintf("The load made %s, and the end state has %d.", check.Plural(t.balances.accounts, "row"), t.rows)
	case t.identity != identity:
		return fmt.Sprintf("The end state has %s, as many as the load made, but not the same ones.", check.Plural(t.rows, "row"))
	}
	return ""
}

func (t *groups) total() check.Result {
	r, stop := t.balances.NeedEndAlone(check.Total)
	if stop {
		return r
	}
	moved := make([]int64, len(t.in.Groups))
	for k := range moved {
		moved[k] = t.sums.end[k] - t.sums.opening[k]
	}
	amounts, whole := t.sums.history+t.sums.acknowledged, true
	for _, m := range moved {
		whole = whole && m == amounts
	}
	excuse := t.excuse()
	switch {
	case whole && t.looses == 0 && t.hole() == "":
		r.Status = check.Valid
		r.Detail = fmt.Sprintf("The balances of %s each grew by %d, the sum of all committed amounts.", t.names("and"), amounts)
	case excuse != "":
		r.Detail = "Not decided: " + excuse + "."
	case t.looses > 0:
		r.Detail = "Not decided: " + t.looseText() + "."
	default:
		r.Status = check.Invalid
		var list []string
		for k, g := range slices.Backward(t.in.Groups) {
			list = append(list, fmt.Sprintf("the balances of the %s grew by %d", g.Name, moved[k]))
		}
		r.Detail = fmt.Sprintf("The amounts of all committed transactions add up to %d, and %s.", amounts, strings.Join(list, ", "))
	}
	return r
}

func (t *groups) looseText() string {
	return fmt.Sprintf("%s of unknown outcome, and without a history nothing tells whether it was applied: %s", check.Plural(t.looses, "transaction"), check.Joined(check.Texts(t.loose), t.looses))
}

func (t *groups) ledger() check.Result {
	r, stop := t.balances.NeedEndAlone(check.Ledger)
	if stop {
		return r
	}
	told, excuse := t.ledgerTold(), t.excuse()
	sure := t.wrongs - t.vague
	switch {
	case len(told) > 0:
		r.Status = check.Invalid
		r.Detail = strings.Join(told, "\n")
	case sure > 0 && excuse == "":
		r.Status = check.Invalid
		for _, w := range t.wrong {
			told = append(told, t.describe(w))
		}
		if more := t.wrongs - len(t.wrong); more > 0 {
			told = append(told, check.Others(more, "row does not hold what it should.", "rows do not hold what they should."))
		}
		r.Detail = strings.Join(told, "\n")
	case t.wrongs > 0 && excuse != "":
		r.Detail = "Not decided: " + excuse + "."
	case t.looses > 0:
		r.Detail = "Not decided: " + t.looseText() + "."
	case t.hole() != "":
		r.Detail = "Not decided: " + t.hole() + "."
	default:
		r.Status = check.Valid
		r.Detail = t.ledgerHolds()
	}
	return r
}

// ledgerTold tells of rows that nobody made, or that are gone, whatever they hold.
func (t *groups) ledgerTold() []string {
	told := t.balances.unexpected(t.in.End)
	if n := t.balances.end.strange; n > 0 {
		told = append(told, fmt.Sprintf("%s of the history on %s that no load made.", check.Plural(n, "amount"), t.names("or")))
	}
	if missing := t.rowsMissing(); missing != "" {
		told = append(told, missing)
	}
	return told
}

func (t *groups) ledgerHolds() string {
	against := "the history"
	switch {
	case t.allBare():
		against = "what was acknowledged (no history was kept, by which a lost, a doubled and a foreign transaction could be told apart)"
	case len(t.in.Bare) > 0:
		against = "the history, and what was acknowledged by runs that kept none"
	}
	text := fmt.Sprintf("The balances of %s were held against %s, and all fit.", check.Plural(t.rows, "row"), against)
	if n := t.sums.strangers; n > 0 {
		text += fmt.Sprintf(" Among the amounts are those of %s of somebody else.", check.Plural(n, "row"))
	}
	return text
}
