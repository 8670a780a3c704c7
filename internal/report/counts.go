package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostCodes is how many codes of a class of errors the short text names.
const mostCodes = 3

// modeText is phaseText with how the clients talk to the database.
func (d *Drive) modeText() string {
	return joined(append([]string{d.phaseText()}, labelled("mode ", clean(d.Style["mode"]))...)...)
}

// countLines returns the counts below the figures of the short text: failed tries, errors by class,
// why counts differ, and how the end state resolved transactions in doubt.
func countLines(r *Result) (list []Setting) {
	d := r.Drive
	switch {
	case d.Rebuilt:
		list = append(list, Setting{"Conflicts", NotKnown + " · " + Counted(d.Retries, "further try")})
	default:
		tries := joined(Group(d.Conflicts), retriesText(d.Retries), reconnectsText(d.Reconnects), d.noErrors())
		list = append(list, Setting{"Conflicts", tries})
	}
	return append(list, present(Setting{"Errors", d.errorsText()}, Setting{"Counts", d.countsText()}, Setting{"In doubt", r.Resolved.text()})...)
}

func retriesText(n uint64) string {
	if n == 1 {
		return "1 retry"
	}
	return Group(n) + " retries"
}

func reconnectsText(n uint64) string {
	if n == 0 {
		return ""
	}
	return Counted(n, "reconnect")
}

func (d *Drive) noErrors() string {
	if len(d.Errors) == 0 {
		return "no errors"
	}
	return ""
}

// errorsText counts the failed tries by class, and in each class by the database's codes; empty if
// there was none. A time-out counts as an aborted try: see db.Class.
func (d *Drive) errorsText() string {
	type class struct {
		name  string
		count uint64
		codes []ErrorCount
	}
	var classes []class
	for _, e := range d.Errors {
		i := slices.IndexFunc(classes, func(c class) bool { return c.name == e.Class })
		if i < 0 {
			i, classes = len(classes), append(classes, class{name: e.Class})
		}
		classes[i].count += e.Count
		at := slices.IndexFunc(classes[i].codes, func(c ErrorCount) bool { return c.Code == e.Code })
		if at < 0 {
			classes[i].codes = append(classes[i].codes, e)
			continue
		}
		classes[i].codes[at].Count += e.Count
	}
	slices.SortStableFunc(classes, func(a, b class) int { return cmp.Compare(b.count, a.count) })
	var parts []string
	for _, c := range classes {
		slices.SortStableFunc(c.codes, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
		var codes []string
		for i, e := range c.codes {
			if i == mostCodes {
				codes = append(codes, "…")
				break
			}
			code := clean(cmp.Or(e.Code, "no code"))
			if len(c.codes) > 1 {
				code += ": " + Group(e.Count)
			}
			codes = append(codes, code)
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", Group(c.count), clean(errorClass(c.name)), strings.Join(codes, ", ")))
	}
	return joined(parts...)
}

// errorClass names a class of errors for people; see db.Class.
func errorClass(name string) string {
	return cmp.Or(map[string]string{
		"aborted":     "tries aborted",
		"unavailable": "tries without a server",
		"unknown":     "tries with an unknown outcome",
		"constraint":  "tries refused by a constraint",
	}[name], name)
}

// countsText explains why the counts of a report differ. The measurements count the measured time,
// and the checks count the recording. It is empty if the counts do not differ or are not known.
func (d *Drive) countsText() string {
	var parts []string
	if w := d.Writes; w != nil && *w != d.Committed {
		parts = append(parts, fmt.Sprintf("%s committed: %s acknowledged writes and %s that only read",
			Group(d.Committed), Group(*w), Group(d.Committed-min(*w, d.Committed))))
	}
	if c := d.Recorded; c != nil && c.Committed+c.Background != d.Committed {
		var with []string
		if early := c.Committed - min(d.Committed, c.Committed); early > 0 {
			with = append(with, fmt.Sprintf("%s of the warm-up", Group(early)))
		}
		if c.Background > 0 {
			with = append(with, Counted(c.Background, "audit"))
		}
		text := fmt.Sprintf("the recording has %s, with %s", Group(c.Committed+c.Background), strings.Join(with, " and "))
		if d.Writes != nil && c.Writes != *d.Writes {
			text += fmt.Sprintf(" (%s writes)", Group(c.Writes))
		}
		parts = append(parts, text)
	}
	return joined(parts...)
}

// text returns how the end state resolved transactions in doubt; empty if there were none.
func (r *Resolved) text() string {
	if r == nil || r.Unknown == 0 {
		return ""
	}
	text := fmt.Sprintf("%s unknown during the run: %s applied, %s not", Group(r.Unknown), Group(r.Applied), Group(r.NotApplied))
	if open := r.Unknown - min(r.Unknown, r.Applied+r.NotApplied); open > 0 {
		text += fmt.Sprintf(", %s still unknown", Group(open))
	}
	return text + ", by the " + clean(cmp.Or(r.By, "end state"))
}

// present returns the settings that have a value.
func present(list ...Setting) []Setting {
	return slices.DeleteFunc(list, func(s Setting) bool { return s.Value == "" })
}
