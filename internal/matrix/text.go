package matrix

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// Mark returns the cell in one word: ✓ (looked for and not seen), seen, some (seen in some variants), n/a
// (nothing looked for it), or ? (not decided).
func (c *Cell) Mark() string {
	switch {
	case c.Some():
		return "some"
	case c.Seen():
		return "seen"
	case c.Schedule == schedule.Undecided:
		return "?"
	case looked(c):
		return notSeen
	}
	return "n/a"
}

const notSeen = "✓"

// Label is Mark in brackets if the anomaly was not seen and the load was short.
func (c *Cell) Label() string {
	if c.Few {
		return "(" + notSeen + ")"
	}
	return c.Mark()
}

// Legend explains Label.
const Legend = "✓ looked for and not seen; (✓) the same, in fewer than 100,000 transactions under load or in none; " +
	"seen; some: seen in some variants; n/a: nothing looked for it; ? not decided"

// title returns the name, with a star if the level is the default.
func (l *Level) title() string {
	if l.Default {
		return l.Name + " ★"
	}
	return l.Name
}

// Bound returns the upper bound by its names in the literature.
func (l *Level) Bound() string {
	if len(l.UpperBound) == 0 {
		return l.AmountsTo
	}
	return joined(l.UpperBound, isolation.Level.Short)
}

// Unseen returns a sentence about what was not seen although the upper bound allows a form of it;
// empty if there is nothing.
func (l *Level) Unseen() string {
	if len(l.Besides) == 0 {
		return ""
	}
	return " Not seen either, although the upper bound allows a form of it: " + strings.Join(l.Besides, ", ") + "."
}

// mostWitnesses is how many variants the text shows of an anomaly.
const mostWitnesses = 5

// Shown returns the first witnesses, and the witnesses of load. JSON, Markdown and the page have all.
func (c *Cell) Shown() []string {
	variants := slices.DeleteFunc(slices.Clone(c.Witnesses), func(w string) bool {
		return strings.HasPrefix(w, underLoad)
	})
	more := len(variants) - mostWitnesses
	if more <= 0 {
		return c.Witnesses
	}
	shown := append(slices.Clone(variants[:mostWitnesses]),
		fmt.Sprintf("and %s: see --json or --format markdown", report.Counted(uint64(more), "more variant")))
	return append(shown, c.Witnesses[len(variants):]...)
}

// Sentence describes how the anomaly was prevented, and the observations under load.
func (c *Cell) Sentence() string {
	var parts []string
	switch c.Schedule {
	case schedule.Prevented:
		parts = append(parts, c.How)
	case schedule.Seen:
		if c.Some() {
			parts = append(parts, "prevented in some variants: "+c.How)
		} else {
			parts = append(parts, "in the schedule")
		}
	case schedule.Undecided:
		parts = append(parts, "not decided: "+c.How)
	}
	switch c.Load {
	case LoadNotSeen:
		parts = append(parts, fmt.Sprintf("not seen in %s under load", report.Counted(c.Transactions, "transaction")))
	case LoadSeen:
		parts = append(parts, fmt.Sprintf("seen under load in %s", report.Counted(c.Transactions, "transaction")))
	}
	return strings.Join(parts, "; ")
}
