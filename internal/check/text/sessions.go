package text

import (
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var sessionClauses = []wording{
	// violations
	{fact.SessionRead{Wrong: fact.ThinAir}, "{Reader} read {Value} from {Object}, which nobody wrote"},
	{fact.SessionRead{Wrong: fact.OfAborted},
		"{Reader} read {Value} from {Object}, which only an aborted transaction wrote"},
	{fact.SessionRead{Wrong: fact.Intermediate},
		"{Reader} read {Value} from {Object}, which {Writer} overwrote before it committed"},
	{fact.SessionRead{Wrong: fact.FutureOwn}, "{Reader} read {Value} from {Object} before it wrote that value itself"},
	{fact.SessionRead{}, "{Reader} read {Value} from {Object} after it had written {Own} there itself"},
	{fact.SessionCircle{Order: fact.OfSessions},
		"{By} must come before itself, by its reads and the order of sessions"},
	{fact.SessionCircle{Order: fact.OfRealTime}, "{By} must come before itself, by its reads and real time"},
	{fact.SessionCircle{}, "{By} must come before itself, by its reads"},
	{fact.SessionLostUpdate{}, "{First} and {Second} both read {Value} from {Object} and wrote it"},
	{fact.SessionNoOrder{}, "every order of {Pairs pair} of writes leads to a cycle"},

	// edges of a cycle
	{fact.SessionInitial{}, "the initial state comes before {Second}"},
	{fact.SessionTime{Order: fact.OfSessions}, "{First} comes before {Second} in their session"},
	{fact.SessionTime{}, "{First} ended {Apart!} before {Second} began"},
	{fact.SessionTime{}, "{First} ended before {Second} began"},
	{fact.SessionReadOf{}, "{Reader} read {Value} of {Writer} from {Object}"},
	{fact.SessionOverwrote{}, "{Reader} read {Value} from {Object}, and {Writer} wrote {Made} over it"},
	{fact.SessionReplaced{}, "{First} wrote {Value} to {Object}, and {Second} wrote {Made} over it"},
	{fact.SessionBefore{}, "{First} comes before {Second}"},

	// how a level is decided, or why it is not
	{fact.SessionHolds{}, "the transactions have an order that {Level} allows"},
	{fact.SessionBroken{}, "broken by the {Anomaly!} at {At}"},
	{fact.SessionBroken{}, "broken by what breaks {At}"},
	{fact.SessionWritesOpen{},
		"the reads do not show the order of some writes, and the search for an order reached its bound"},
	{fact.SessionNoTimes{}, "the history has no start and end times of transactions"},
}

// sessions returns the clause of a fact of a history of sessions that needs more than a wording; empty for others.
func (s Speaker) sessions(f fact.Fact) string {
	switch f := f.(type) {
	case fact.SessionMissed:
		return s.sessionMissed(f)
	case fact.SessionCycle:
		if len(f.Why) == 2 {
			return s.bothBefore(f.Why)
		}
		return s.fill("{By} must come before itself, through {Length dependency}", f)
	case fact.SessionEitherOrder:
		return s.sessionEitherOrder(f)
	}
	return ""
}

func (s Speaker) sessionMissed(f fact.SessionMissed) string {
	text := "{Reader} read {Value} from {Object} (which nobody wrote)"
	if f.Writer != nil {
		text = "{Reader} read {Value} from {Object} (written by {Writer})"
	}
	text += " and missed {Missed} (written by {By}), although "
	switch {
	case f.Session:
		text += "{By} comes before {Reader} in their session"
	case f.AlsoObject != "":
		text += "it also read {AlsoValue} of {By} from {AlsoObject}"
	default:
		text += "{By} comes before {Reader} through the reads of others"
	}
	if f.Length > 2 {
		text += "; this leads to a cycle of {Length transaction}"
	}
	return s.fill(text, f)
}

func (s Speaker) sessionEitherOrder(f fact.SessionEitherOrder) string {
	text, otherwise := s.Clause(f.Cycle), s.all(f.Otherwise)
	order := s.fill("{Earlier} was written to {Object} before {Later}", f)
	switch {
	case otherwise == "":
	case f.Forced:
		text += ". " + check.Capital(order) + ", because otherwise: " + otherwise
	default:
		text += ". This follows if " + order + ". Otherwise: " + otherwise
	}
	if f.More > 0 {
		text += s.fill(". The order of {More more pair} of writes changes nothing", f)
	}
	return text
}

// all returns the clauses of several facts.
func (s Speaker) all(facts []fact.Fact) string {
	var list []string
	for _, f := range facts {
		list = append(list, s.Clause(f))
	}
	return strings.Join(list, "; ")
}
