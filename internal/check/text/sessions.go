package text

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

// sessions returns the clause of a fact of a history of sessions; empty for others.
func (s Speaker) sessions(f fact.Fact) string {
	for _, clause := range []func(fact.Fact) string{s.sessionViolations, s.sessionEdges, sessionReasons} {
		if text := clause(f); text != "" {
			return text
		}
	}
	return ""
}

// sessionViolations returns the clause of a fact that breaks a level.
func (s Speaker) sessionViolations(f fact.Fact) string {
	switch f := f.(type) {
	case fact.SessionRead:
		return s.sessionRead(f)
	case fact.SessionMissed:
		return s.sessionMissed(f)
	case fact.SessionCircle:
		by := map[fact.TimeOrder]string{fact.OfSessions: " and the order of sessions", fact.OfRealTime: " and real time"}
		return fmt.Sprintf("%s must come before itself, by its reads%s", s.Member(f.By), by[f.Order])
	case fact.SessionLostUpdate:
		return fmt.Sprintf("%s and %s both read %s from %s and wrote it",
			s.Member(f.First), s.Member(f.Second), f.Value, s.On(f.Object))
	case fact.SessionCycle:
		if len(f.Why) == 2 {
			return s.Clause(f.Why[0]) + "; " + s.Clause(f.Why[1]) + ". So each must come before the other"
		}
		return fmt.Sprintf("%s must come before itself, through %s", s.Member(f.By), check.Plural(f.Length, "dependency"))
	case fact.SessionEitherOrder:
		return s.sessionEitherOrder(f)
	case fact.SessionNoOrder:
		return fmt.Sprintf("every order of %s of writes leads to a cycle", check.Plural(f.Pairs, "pair"))
	}
	return ""
}

func (s Speaker) sessionRead(f fact.SessionRead) string {
	text := fmt.Sprintf("%s read %s from %s", s.Member(f.Reader), f.Value, s.On(f.Object))
	switch f.Wrong {
	case fact.ThinAir:
		return text + ", which nobody wrote"
	case fact.OfAborted:
		return text + ", which only an aborted transaction wrote"
	case fact.Intermediate:
		return text + fmt.Sprintf(", which %s overwrote before it committed", s.Member(*f.Writer))
	case fact.FutureOwn:
		return text + " before it wrote that value itself"
	}
	return text + fmt.Sprintf(" after it had written %s there itself", f.Own)
}

func (s Speaker) sessionMissed(f fact.SessionMissed) string {
	by := "which nobody wrote"
	if f.Writer != nil {
		by = "written by " + s.Member(*f.Writer)
	}
	text := fmt.Sprintf("%s read %s from %s (%s) and missed %s (written by %s), although ",
		s.Member(f.Reader), f.Value, s.On(f.Object), by, f.Missed, s.Member(f.By))
	switch {
	case f.Session:
		text += fmt.Sprintf("%s comes before %s in their session", s.Member(f.By), s.Member(f.Reader))
	case f.AlsoObject != "":
		text += fmt.Sprintf("it also read %s of %s from %s", f.AlsoValue, s.Member(f.By), s.On(f.AlsoObject))
	default:
		text += fmt.Sprintf("%s comes before %s through the reads of others", s.Member(f.By), s.Member(f.Reader))
	}
	if f.Length > 2 {
		text += fmt.Sprintf("; this leads to a cycle of %s", check.Plural(f.Length, "transaction"))
	}
	return text
}

func (s Speaker) sessionEitherOrder(f fact.SessionEitherOrder) string {
	text := s.Clause(f.Cycle)
	var otherwise []string
	for _, step := range f.Otherwise {
		otherwise = append(otherwise, s.Clause(step))
	}
	order := fmt.Sprintf("%s was written to %s before %s", f.Earlier, s.On(f.Object), f.Later)
	switch {
	case len(otherwise) == 0:
	case f.Forced:
		text += fmt.Sprintf(". %s, because otherwise: %s", check.Capital(order), strings.Join(otherwise, "; "))
	default:
		text += fmt.Sprintf(". This follows if %s. Otherwise: %s", order, strings.Join(otherwise, "; "))
	}
	if f.More > 0 {
		text += fmt.Sprintf(". The order of %s of writes changes nothing", check.Plural(f.More, "more pair"))
	}
	return text
}

// sessionEdges returns the clause of an edge of a cycle.
func (s Speaker) sessionEdges(f fact.Fact) string {
	switch f := f.(type) {
	case fact.SessionInitial:
		return "the initial state comes before " + s.Member(f.Second)
	case fact.SessionTime:
		switch {
		case f.Order == fact.OfSessions:
			return fmt.Sprintf("%s comes before %s in their session", s.Member(f.First), s.Member(f.Second))
		case f.Apart > 0:
			return fmt.Sprintf("%s ended %s before %s began", s.Member(f.First), check.Lasted(f.Apart), s.Member(f.Second))
		}
		return fmt.Sprintf("%s ended before %s began", s.Member(f.First), s.Member(f.Second))
	case fact.SessionReadOf:
		return fmt.Sprintf("%s read %s of %s from %s", s.Member(f.Reader), f.Value, s.Member(f.Writer), s.On(f.Object))
	case fact.SessionOverwrote:
		return fmt.Sprintf("%s read %s from %s, and %s wrote %s over it",
			s.Member(f.Reader), f.Value, s.On(f.Object), s.Member(f.Writer), f.Made)
	case fact.SessionReplaced:
		return fmt.Sprintf("%s wrote %s to %s, and %s wrote %s over it",
			s.Member(f.First), f.Value, s.On(f.Object), s.Member(f.Second), f.Made)
	case fact.SessionBefore:
		return fmt.Sprintf("%s comes before %s", s.Member(f.First), s.Member(f.Second))
	}
	return ""
}

// sessionReasons returns the clause of a fact that decides a level or leaves it undecided.
func sessionReasons(f fact.Fact) string {
	switch f := f.(type) {
	case fact.SessionHolds:
		return "the transactions have an order that " + f.Level + " allows"
	case fact.SessionBroken:
		if f.Anomaly == "" {
			return "broken by what breaks " + f.At
		}
		return fmt.Sprintf("broken by the %s at %s", f.Anomaly, f.At)
	case fact.SessionWritesOpen:
		return "the reads do not show the order of some writes, and the search for an order reached its bound"
	case fact.SessionNoTimes:
		return "the history does not say which transactions ended before others began"
	}
	return ""
}
