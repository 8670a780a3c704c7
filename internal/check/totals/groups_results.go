package totals

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

// readRows compares every final balance with the expected one.
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
		wrong, list := wrongAccount{account: a, want: b.in.Opening(a.N)}, &t.wrong
		if b.proof != nil {
			wrong.want = a.Value
		} else if s := b.slots.find(a.N); s != nil {
			wrong.want += s.sum
			if s.broken && t.loose.count > 0 {
				list = &t.vague
			}
		}
		if a.Value == wrong.want {
			continue
		}
		if b.Input.OnViolation != nil {
			b.Show(check.Ledger, "", 0, b.Object(a.N), t.rowBooks(wrong))
		}
		list.add(wrong)
	}
	return problem
}

func (t *groups) rowBooks(w wrongAccount) fact.RowBooks {
	return fact.RowBooks{Object: fact.Object(t.in.Name(w.account.N)), Balance: w.account.Value, Want: w.want}
}

func (t *groups) total(r check.Result) check.Result {
	what := fact.Growth{
		Added:  t.sums.history + t.sums.astray + t.sums.acknowledged,
		Driven: slices.ContainsFunc(t.in.History, func(s check.Source) bool { return check.Driven(s.Header()) }),
	}
	whole := true
	for k, g := range slices.Backward(t.in.Groups) {
		moved := t.sums.end[k] - t.sums.opening[k]
		whole = whole && moved == what.Added
		what.Groups = append(what.Groups, fact.Group{Name: g.Name, Grew: moved})
	}
	found := findings{check: r.Name}
	why := firstOf(t.excuse(), t.undecidedLoose())
	switch {
	case whole && t.loose.count == 0 && t.hole() == nil:
		why = nil
	case why == nil:
		found.add(what, "")
	}
	return found.judge(r, why, what)
}

// undecidedLoose returns the fact that some transactions leave no trace which shows whether they were
// applied, or nil.
func (t *groups) undecidedLoose() fact.Fact {
	if t.loose.count == 0 {
		return nil
	}
	return fact.Loose{First: t.loose.first, Count: t.loose.count}
}

func (t *groups) ledger(r check.Result) check.Result {
	b := t.balances
	found := findings{check: r.Name}
	b.addForeignRows(&found, t.in.End)
	if n := b.end.strange.count; n > 0 {
		found.add(fact.ForeignAmounts{Groups: t.names()}, "")
		found.more(n - 1)
	}
	if missing := b.missingObjects("row"); missing != nil {
		found.add(missing, "")
	}
	why := firstOf(t.undecidedLoose(), t.hole())
	if t.wrong.count+t.vague.count > 0 {
		why = firstOf(t.excuse(), why)
		if len(found.list) == 0 && t.wrong.count > 0 && t.excuse() == nil {
			t.addWrong(&found)
		}
	}
	return found.judge(r, why, fact.RowsFit{
		Rows: b.end.accounts, Bare: t.allBare(), Partly: len(t.in.Bare) > 0, Foreign: int64(t.sums.unexpected),
	})
}

// addWrong adds the rows with wrong balances, unexplained ones first.
func (t *groups) addWrong(found *findings) {
	for _, w := range slices.Concat(t.wrong.first, t.vague.first) {
		what := t.rowBooks(w)
		found.add(what, what.Object)
	}
	found.more(t.wrong.count + t.vague.count - len(t.wrong.first) - len(t.vague.first))
}
