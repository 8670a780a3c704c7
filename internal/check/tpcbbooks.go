package check

import (
	"fmt"
	"strings"
)

// tpcbKinds names the kinds of rows.
var tpcbKinds = [3]string{"branches", "tellers", "accounts"}

// readRows holds every end balance against what its row is to hold.
func (t *tpcb) readRows() error {
	b := t.bank
	if t.in.End == nil {
		return nil
	}
	for a, err := range t.in.End.Accounts() {
		if err != nil {
			return fmt.Errorf("the end state's rows could not be read: %w", err)
		}
		if b.watch.ended() {
			return b.watch.err
		}
		t.rows++
		t.identity += mix(a.N + 1)
		want, loose := int64(0), false
		if s := b.slots.find(a.N); s != nil {
			want, loose = s.sum, s.broken && t.looses > 0
		}
		if a.Balance == want {
			continue
		}
		t.wrongs++
		if loose {
			t.vague++
		}
		w := wrongRow{a, want}
		if b.in.Tell != nil {
			b.witness(Ledger, "", 0, b.in.Name(a.N), t.tellWrong(w))
		}
		// Those that nothing explains come first.
		if !loose && t.vague > 0 && len(t.wrong) == some {
			t.wrong = t.wrong[:some-1]
		}
		if len(t.wrong) < some {
			t.wrong = append(t.wrong, w)
		}
	}
	return nil
}

func (t *tpcb) tellWrong(w wrongRow) string {
	return fmt.Sprintf("%s holds %d, and its opening and the amounts that it got make %d (%+d off).",
		t.in.Name(w.row.N), w.row.Balance, w.want, w.row.Balance-w.want)
}

// rowsMissing says what is wrong with the set of rows; empty if nothing.
func (t *tpcb) rowsMissing() string {
	var identity uint64
	for n := range t.bank.in.Accounts {
		if t.bank.watch.ended() {
			return ""
		}
		identity += mix(n + 1)
	}
	switch {
	case t.rows != t.bank.in.Accounts:
		return fmt.Sprintf("The load made %s, and the end state has %d.", plural(t.bank.in.Accounts, "row"), t.rows)
	case t.identity != identity:
		return fmt.Sprintf("The end state has %s, as many as the load made, but not the same ones.", plural(t.rows, "row"))
	}
	return ""
}

func (t *tpcb) total() Result {
	r, stop := t.bank.endless(Total)
	if stop {
		return r
	}
	var moved [3]int64
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
		r.Status = Valid
		r.Detail = fmt.Sprintf("The balances of accounts, tellers and branches each grew by %d, the sum of all committed amounts.", amounts)
	case excuse != "":
		r.Detail = "Not decided: " + excuse + "."
	case t.looses > 0:
		r.Detail = "Not decided: " + t.looseText() + "."
	default:
		r.Status = Invalid
		var list []string
		for k := 2; k >= 0; k-- {
			list = append(list, fmt.Sprintf("the balances of the %s grew by %d", tpcbKinds[k], moved[k]))
		}
		r.Detail = fmt.Sprintf("The amounts of all committed transactions add up to %d, and %s.", amounts, strings.Join(list, ", "))
	}
	return r
}

func (t *tpcb) looseText() string {
	return fmt.Sprintf("%s of unknown outcome, and without a history nothing tells whether it was applied: %s", plural(t.looses, "transaction"), joined(text(t.loose), t.looses))
}

func (t *tpcb) ledger() Result {
	r, stop := t.bank.endless(Ledger)
	if stop {
		return r
	}
	told, excuse := t.ledgerTold(), t.excuse()
	sure := t.wrongs - t.vague
	switch {
	case len(told) > 0:
		r.Status = Invalid
		r.Detail = strings.Join(told, "\n")
	case sure > 0 && excuse == "":
		r.Status = Invalid
		for _, w := range t.wrong {
			told = append(told, t.tellWrong(w))
		}
		if more := t.wrongs - len(t.wrong); more > 0 {
			told = append(told, others(more, "row does not hold what it should.", "rows do not hold what they should."))
		}
		r.Detail = strings.Join(told, "\n")
	case t.wrongs > 0 && excuse != "":
		r.Detail = "Not decided: " + excuse + "."
	case t.looses > 0:
		r.Detail = "Not decided: " + t.looseText() + "."
	case t.hole() != "":
		r.Detail = "Not decided: " + t.hole() + "."
	default:
		r.Status = Valid
		r.Detail = t.ledgerHolds()
	}
	return r
}

// ledgerTold tells of rows that nobody made, or that are gone, whatever they hold.
func (t *tpcb) ledgerTold() []string {
	var told []string
	strangers := t.in.End.Strangers()
	if len(strangers) > 0 {
		told = append(told, fmt.Sprintf("%s that no load and no client made: %s.", plural(len(strangers), "row"),
			joined(strangers[:min(some, len(strangers))], len(strangers))))
	}
	for _, row := range strangers {
		t.bank.witness(Ledger, "", 0, "", row)
	}
	if n := t.bank.end.strange; n > 0 {
		told = append(told, fmt.Sprintf("%s of the history on accounts, tellers or branches that no load made.", plural(n, "amount")))
	}
	if missing := t.rowsMissing(); missing != "" {
		told = append(told, missing)
	}
	return told
}

func (t *tpcb) ledgerHolds() string {
	against := "the history"
	switch {
	case t.allBare():
		against = "what was acknowledged (no history was kept, by which a lost, a doubled and a foreign transaction could be told apart)"
	case len(t.in.Bare) > 0:
		against = "the history, and what was acknowledged by runs that kept none"
	}
	text := fmt.Sprintf("The balances of %s were held against %s, and all fit.", plural(t.rows, "row"), against)
	if n := t.sums.strangers; n > 0 {
		text += fmt.Sprintf(" Among the amounts are those of %s of somebody else.", plural(n, "row"))
	}
	return text
}
