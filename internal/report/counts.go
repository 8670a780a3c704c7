package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostCodes is how many codes of a class of errors the short text names.
const mostCodes = 3

// countLines returns the counts below the figures of the short text: failed tries, errors by class,
// why counts differ, and how the end state resolved transactions in doubt.
func countLines(r *Result) []Setting {
	d := r.Drive
	tries := []string{Group(d.Conflicts), Group(d.Retries) + " retries", countedOr(int(d.Reconnects), "reconnect")}
	if d.Retries == 1 {
		tries[1] = "1 retry"
	}
	if len(d.Errors) == 0 {
		tries = append(tries, "no errors")
	}
	if d.Rebuilt {
		tries = []string{NotKnown, Counted(d.Retries, "further try")}
	}
	return append([]Setting{{"Conflicts", joined(tries...)}}, present(Setting{"Errors", d.errorsText()}, Setting{"Counts", d.countsText()}, Setting{"In doubt", r.Resolved.text()})...)
}

// errorsText counts the failed tries by class, and in each class by the database's codes; empty if
// there was none. A time-out counts as an aborted try: see db.Class.
func (d *Drive) errorsText() string {
	var classes []string
	codes, totals := map[string][]ErrorCount{}, map[string]uint64{} // by class
	for _, e := range d.Errors {
		if totals[e.Class] += e.Count; totals[e.Class] == e.Count {
			classes = append(classes, e.Class)
		}
		if at := slices.IndexFunc(codes[e.Class], func(c ErrorCount) bool { return c.Code == e.Code }); at >= 0 {
			codes[e.Class][at].Count += e.Count
		} else {
			codes[e.Class] = append(codes[e.Class], e)
		}
	}
	slices.SortStableFunc(classes, func(a, b string) int { return cmp.Compare(totals[b], totals[a]) })
	var parts []string
	for _, class := range classes {
		list := codes[class]
		slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
		var texts []string
		for _, e := range list[:min(len(list), mostCodes)] {
			texts = append(texts, clean(cmp.Or(e.Code, "no code")))
			if len(list) > 1 {
				texts[len(texts)-1] += ": " + Group(e.Count)
			}
		}
		if len(list) > mostCodes {
			texts = append(texts, "…")
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", Group(totals[class]), clean(errorClass(class)), strings.Join(texts, ", ")))
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
