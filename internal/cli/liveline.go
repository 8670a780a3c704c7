package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stroppy/internal/report"
	"stroppy/internal/run"
)

// part is a piece of the line that tells how far a run is: in full, and for
// where there is little room.
type part struct {
	full, brief string
	weight      int // the lightest part gives way first
}

// fit puts the parts into a line of at most width characters: as many in full as
// there is room for, then in brief, and then without the lightest.
func fit(lead string, parts []part, width int) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.full
	}
	line := func() string {
		var there []string
		for _, t := range texts {
			if t != "" {
				there = append(there, t)
			}
		}
		return strings.TrimRight(lead+" "+strings.Join(there, " · "), " ")
	}
	for _, shorten := range []func(part) string{func(p part) string { return p.brief }, func(part) string { return "" }} {
		for done := make([]bool, len(parts)); utf8.RuneCountInString(line()) > width; {
			lightest := -1
			for i, p := range parts {
				if !done[i] && (lightest < 0 || p.weight < parts[lightest].weight) {
					lightest = i
				}
			}
			if lightest < 0 {
				break
			}
			done[lightest], texts[lightest] = true, shorten(parts[lightest])
		}
	}
	if runes := []rune(line()); len(runes) > width {
		return string(runes[:max(width, 0)])
	}
	return line()
}

// driveParts tell of a drive, in the order in which they are shown. rate is what
// it committed a second of late; latencies are those of its last whole second.
func driveParts(s run.State, rate float64, faults []report.Fault, elapsed time.Duration) []part {
	var parts []part
	add := func(weight int, full, brief string) { parts = append(parts, part{full, brief, weight}) }
	if left, known := left(s, elapsed); known {
		text := left.Round(time.Second).String()
		add(90, text+" left", text)
	}
	c := s.Counters
	add(80, si(rate)+"/s", si(rate)+"/s")
	if s.Second != nil && s.Second.Committed > 0 {
		p50, p99, most := ms(s.Second.P50), ms(s.Second.P99), ms(s.Second.Max)
		add(60, "p50 "+p50+" p99 "+p99+" max "+most+" ms", p50+"/"+p99+"/"+most+" ms")
	}
	if text := faultText(faults); text != "" {
		add(85, text, text)
	}
	if c.Reconnecting > 0 {
		add(70, fmt.Sprintf("%d of %d clients reconnecting", c.Reconnecting, s.Clients), fmt.Sprintf("%d/%d lost", c.Reconnecting, s.Clients))
	}
	if c.Backlog > 0 {
		add(50, si(float64(c.Backlog))+" waiting", si(float64(c.Backlog))+" late")
	}
	if c.Shed > 0 {
		add(55, si(float64(c.Shed))+" shed", si(float64(c.Shed))+" shed")
	}
	add(30, si(float64(c.Committed))+" committed", si(float64(c.Committed))+" ok")
	for _, o := range []struct {
		n           uint64
		full, brief string
		weight      int
	}{{c.Rejected, "rejected", "rej", 10}, {c.Aborted, "aborted", "abr", 20}, {c.Unknown, "unknown", "unk", 40}} {
		if o.n > 0 {
			add(o.weight, si(float64(o.n))+" "+o.full, si(float64(o.n))+" "+o.brief)
		}
	}
	return parts
}

// faultText names the fault that is in effect, and how many others are.
func faultText(faults []report.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	last := faults[len(faults)-1]
	what, _, _ := strings.Cut(last.Fault, " at ")
	what, _, _ = strings.Cut(what, " every ")
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, "! "+what)
	if more := len(faults) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// si writes a number with three digits and its power of a thousand.
func si(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= unit.size*0.9995 {
			return digits(x/unit.size) + unit.name
		}
	}
	return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
}

// digits writes a number from 1 on with three digits.
func digits(x float64) string {
	switch {
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// ms writes a time in milliseconds with two digits, and whole ones from ten on.
func ms(d time.Duration) string {
	x := float64(d) / float64(time.Millisecond)
	switch {
	case x >= 9.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 0.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
