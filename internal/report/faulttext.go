package report

import (
	"fmt"
	"strings"
)

// faults writes a line a fault: when, what, and how the database took it.
func (t *text) faults() {
	if len(t.r.Faults) == 0 {
		return
	}
	t.head("Faults")
	const columns = "  %7s  %-28s%9s%9s  %8s%8s%8s  %s\n"
	fmt.Fprintf(&t.out, columns, "at", "", "outage", "back in", "tps", "", "", "in doubt")
	fmt.Fprintf(&t.out, columns, "", "", "", "", "before", "during", "after", "(applied, not)")
	for _, f := range t.r.Faults {
		doubt := ""
		if f.Unknown > 0 {
			doubt = fmt.Sprintf("%s (%s, %s)", group(f.Unknown), group(f.FoundCommitted), group(f.FoundAborted))
		}
		outage, back := "", ""
		if f.OutageSeconds != nil {
			outage, back = outageText(seconds)(*f.OutageSeconds), f.backText(seconds)
		}
		line := fmt.Sprintf(columns, seconds(f.AtSeconds), short(clean(f.Fault), 28), outage, back,
			optional(f.TPSBefore), optional(f.TPSDuring), optional(f.TPSAfter), doubt)
		t.out.WriteString(strings.TrimRight(line, " \n") + "\n")
		notes := []string{f.Target, f.lateText(), f.Verified}
		if f.P99Before != nil && f.P99During != nil {
			note := fmt.Sprintf("p99 %s ms before, %s ms during", LatencyText(*f.P99Before), LatencyText(*f.P99During))
			if f.P99After != nil {
				note += fmt.Sprintf(", %s ms after", LatencyText(*f.P99After))
			}
			notes = append(notes, note)
		}
		if f.Uncompared != "" && f.OutageSeconds != nil {
			notes = append(notes, "back in is not known: "+f.Uncompared)
		}
		t.faultNotes(append(notes, f.troubles()...))
	}
	if d := t.r.Degradation; d != nil {
		how := "none"
		if d.Loss() >= 0 {
			how = fmt.Sprintf("%.1f %% less", 100*d.Loss())
		}
		t.line("degradation", fmt.Sprintf("%s tps before the first fault, %s after the last heal: %s", RateText(d.FirstTPS), RateText(d.LastTPS), how))
	}
}

// outageText writes an outage, of which there may be none.
func outageText(write func(float64) string) func(float64) string {
	return func(s float64) string {
		if s == 0 {
			return "none"
		}
		return write(s)
	}
}

// troubles are what did not come to be of a fault, and why.
func (f *Fault) troubles() []string {
	return labelled("not injected: ", f.Error, "not healed: ", f.HealError, "skipped: ", f.Skipped)
}

// labelled puts each label before the text that follows it, where there is one.
func labelled(pairs ...string) (list []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, pairs[i]+pairs[i+1])
		}
	}
	return list
}

// backText says how long it took until the throughput was back.
func (f *Fault) backText(write func(float64) string) string {
	switch {
	case f.RecoveredSeconds == nil && f.Uncompared != "":
		return none
	case f.RecoveredSeconds == nil:
		return "never"
	case *f.RecoveredSeconds == 0:
		return "no fall"
	}
	return write(*f.RecoveredSeconds)
}

// lateText says by how much a fault came later than scheduled; empty where it is
// not worth a word.
func (f *Fault) lateText() string {
	late := f.LateSeconds()
	if late < lateFrom || f.Skipped != "" {
		return ""
	}
	text := fmt.Sprintf("late: it was due at %s and came %s after that", seconds(f.ScheduledSeconds), seconds(late))
	if f.Late != "" {
		text += "; " + f.Late
	}
	return text
}

// faultNotes writes faint lines below a fault.
func (t *text) faultNotes(notes []string) {
	const indent = 11
	for _, note := range notes {
		for _, part := range wrap(note, width-indent) {
			t.out.WriteString(strings.Repeat(" ", indent) + t.paint(faint, part) + "\n")
		}
	}
}

// short cuts a text to so many columns.
func short(s string, columns int) string {
	if runes := []rune(s); len(runes) > columns-1 {
		return string(runes[:columns-2]) + "…"
	}
	return s
}
