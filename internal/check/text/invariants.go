package text

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var invariantClauses = []wording{
	{fact.InvariantsHold{}, "{Invariants! invariant} held in {Audits! audit} during the load phase and in the end state"},
	{fact.InvariantsHold{}, "{Invariants! invariant} held in the end state"},
	{fact.InvariantUnread{Later: true}, "the invariant {Name} sums what one run did, and later runs may have changed it"},
	{fact.InvariantUnread{}, "the end state has no answer for the invariant {Name}"},
	{fact.InvariantOpen{}, "the invariant {Name} read {Saw}, and {Unknown transaction} of unknown outcome leave the sum " +
		"between {Low} and {High}"},
}

// invariants returns the clause of a fact about invariants that needs more than a wording; empty for others.
func (s Speaker) invariants(f fact.Fact) string {
	switch f := f.(type) {
	case fact.InvariantBroken:
		return brokenInvariant(f)
	}
	return ""
}

func brokenInvariant(broken fact.InvariantBroken) string {
	text := fmt.Sprintf("the invariant %s (%s) does not hold: ", broken.Name, broken.Expect)
	if broken.By == 0 {
		text += "the end state has "
	} else {
		text += fmt.Sprintf("audit %v at %.1f s read ", broken.By, broken.At.Seconds())
	}
	switch {
	case broken.Saw != "":
		text += broken.Saw
	case broken.Other != nil:
		const alone = "only there: "
		return text + rowsOf(broken.Count, alone, broken.Rows) +
			", and the other query " + rowsOf(broken.Others, alone, broken.Other)
	default:
		text += rowsOf(broken.Count, "", broken.Rows)
	}
	if broken.Want != "" {
		text += " in place of " + broken.Want
	}
	return text
}

// rowsOf formats a result with some of its rows.
func rowsOf(n int, which string, some []string) string {
	switch {
	case n == 0:
		return "no row"
	case len(some) == 0:
		return check.Plural(n, "row")
	}
	text := check.Plural(n, "row") + " (" + which + strings.Join(some, "; ")
	if which == "" && n > len(some) {
		text += "; …"
	}
	return text + ")"
}
