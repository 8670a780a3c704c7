package totals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// readRows compares every end balance with what its row is to hold.
func (t *groups) readRows() (problem error) {
	b := t.balances
	if t.in.End == nil {
		return nil
	}
	b.end.accounts, b.end.identity = 0, 0
	for a := range check.Each(&b.Watch, "the end state's rows", t.in.End.Objects(), &problem) {
		b.end.accounts++
		b.end.identity += check.Mix(a.N + 1)
		if k := t.kind(a.N); k < len(t.in.Groups) {
			t.sums.end[k] += a.Value
		}
		wrong, list := wrongAccount{account: a}, &t.wrong
		if b.proof != nil {
			wrong.want = a.Value
		} else if s := b.slots.find(a.N); s != nil {
			wrong.want = s.sum
			if s.broken && t.loose.count > 0 {
				list = &t.vague
			}
		}
		if a.Value == wrong.want {
			continue
		}
		if b.Input.OnViolation != nil {
			b.Report(check.Ledger, "", 0, b.Input.Name(a.N), t.describe(wrong))
		}
		list.add(wrong)
	}
	return problem
}

func (t *groups) describe(w wrongAccount) string {
	return fmt.Sprintf("%s holds %d, and its opening and the amounts that it got make %d (%+d off).",
		t.in.Name(w.account.N), w.account.Value, w.want, w.account.Value-w.want)
}

func (t *groups) total(r check.Result) check.Result {
	amounts, whole := t.sums.history+t.sums.astray+t.sums.acknowledged, true
	of, sum := "The amounts of all committed transactions", "the sum of all committed amounts"
	if !slices.ContainsFunc(t.in.History, func(s check.Source) bool { return check.Driven(s.Header()) }) {
		of, sum = "The amounts of the history", "the sum of the amounts of the history"
	}
	var grew []string
	for k, g := range slices.Backward(t.in.Groups) {
		moved := t.sums.end[k] - t.sums.opening[k]
		whole = whole && moved == amounts
		grew = append(grew, fmt.Sprintf("the balances of the %s grew by %d", g.Name, moved))
	}
	var found verdict
	why := cmp.Or(t.excuse(), t.undecidedLoose())
	switch {
	case whole && t.loose.count == 0 && t.hole() == "":
		why = ""
	case why == "":
		found.add(fmt.Sprintf("%s add up to %d, and %s.", of, amounts, strings.Join(grew, ", ")))
	}
	return found.decide(r, why, fmt.Sprintf("The balances of %s each grew by %d, %s.", t.names("and"), amounts, sum))
}

// undecidedLoose says that transactions leave nothing by which to know whether they were
// applied; empty if none do.
func (t *groups) undecidedLoose() string {
	if t.loose.count == 0 {
		return ""
	}
	return fmt.Sprintf("%s of unknown outcome, and without a history it is not known whether it was applied: %s",
		check.Plural(t.loose.count, "transaction"), t.loose.list(history.ID.String))
}

func (t *groups) ledger(r check.Result) check.Result {
	b := t.balances
	var found verdict
	b.addUnexpected(&found, t.in.End)
	if b.end.strange > 0 {
		found.add(fmt.Sprintf("%s of the history on %s that no load made.", check.Plural(b.end.strange, "amount"), t.names("or")))
	}
	if missing := b.missingObjects("row"); missing != "" {
		found.add(missing)
	}
	why := cmp.Or(t.undecidedLoose(), t.hole())
	if t.wrong.count+t.vague.count > 0 {
		why = cmp.Or(t.excuse(), why)
		if len(found.lines) == 0 && t.wrong.count > 0 && t.excuse() == "" {
			t.addWrong(&found)
		}
	}
	return found.decide(r, why, t.ledgerHolds())
}

// addWrong adds the rows that do not hold what they should, first those that nothing
// explains.
func (t *groups) addWrong(found *verdict) {
	list := slices.Concat(t.wrong.first, t.vague.first)
	list = list[:min(len(list), check.Shown)]
	for _, w := range list {
		found.add(t.describe(w))
	}
	found.more(t.wrong.count+t.vague.count-len(list), "row does not hold what it should.", "rows do not hold what they should.")
}

func (t *groups) ledgerHolds() string {
	against := "the history"
	switch {
	case t.allBare():
		against = "what was acknowledged (no history was kept, which would distinguish a lost, a doubled and a foreign transaction)"
	case len(t.in.Bare) > 0:
		against = "the history, and what was acknowledged by runs that kept none"
	}
	text := fmt.Sprintf("The balances of %s were checked against %s, and all fit.", check.Plural(t.balances.end.accounts, "row"), against)
	if n := t.sums.unexpected; n > 0 {
		text += fmt.Sprintf(" Among the amounts are those of %s of somebody else.", check.Plural(n, "row"))
	}
	return text
}
