package logs

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kind is a kind of violations, as noFindings says them.
type kind int

const (
	lost kind = iota
	partly
	broken
	ghosts
	closed
	never
	twice
	strange
	lengths
	torn
	elsewhere
	apart
	behindOwn
	behindLater
	overlapping
	holes
	shared
	ends
	absent
	kinds
)

func noFindings(one string) [kinds]check.Findings {
	return [kinds]check.Findings{
		lost:        {Check: check.Durable, Noun: one, Title: "%s acknowledged and lost"},
		partly:      {Check: check.Durable, Noun: one, Title: "%s acknowledged and lost in part"},
		broken:      {Check: check.Durable, Noun: one, Title: "%s acknowledged and spoilt"},
		ghosts:      {Check: check.NoGhost, Noun: one, Title: "%s reported as not applied, yet in the log"},
		closed:      {Check: check.NoGhost, Noun: one, Title: "%s closed by a look-up, yet applied later"},
		never:       {Check: check.NoGhost, Noun: one, Title: "%s in the log that no client ever sent"},
		twice:       {Check: check.ExactlyOnce, Noun: one, Title: "%s applied twice"},
		strange:     {Check: Whole, Noun: "entry", Title: "%s not as anybody wrote it"},
		lengths:     {Check: Whole, Noun: one, Title: "%s with events of another length"},
		torn:        {Check: Whole, Noun: one, Title: "%s applied in part"},
		elsewhere:   {Check: Order, Noun: one, Title: "%s at another place than was acknowledged"},
		apart:       {Check: Order, Noun: one, Title: "%s whose events do not stand together in their order"},
		behindOwn:   {Check: Order, Noun: one, Title: "%s behind a later one of the same client"},
		behindLater: {Check: Order, Noun: one, Title: "%s behind one that began only after it was acknowledged"},
		overlapping: {Check: Order, Noun: one, Title: "%s acknowledged at a place of another"},
		holes:       {Check: Continuous, Noun: "hole", Title: "%s"},
		shared:      {Check: Continuous, Noun: "place", Title: "%s with two entries"},
		ends:        {Check: Continuous, Noun: "stream", Title: "%s whose end is not where it should be"},
		absent:      {Check: Continuous, Noun: "stream", Title: "%s not as the load made them"},
	}
}

// find notes that an append shows a violation. An append is counted once in a row,
// however many of its events show it.
func (e *checker) find(of kind, i uint32, format string, args ...any) {
	f, id, what := &e.found[of], e.Txns.List[i].ID, fmt.Sprintf(format, args...)
	e.Report(f.Check, "", id, e.NameToReport(e.places[i].stream), what)
	if f.Count == 0 || e.latest[of] != id {
		f.Add(fmt.Sprintf("%v %s", id, what), id)
	}
	e.latest[of] = id
}

// note is find for what is shown by a stream. There may be no append.
func (e *checker) note(of kind, id history.ID, stream uint64, label, what string) {
	e.Report(e.found[of].Check, "", id, e.NameToReport(stream), what)
	e.found[of].Add(label, id)
}

// decide makes the results of all checks, in their order. Continuous is not required
// where dirty reads are allowed: an append then may stand behind one that it has seen
// and that was rolled back.
func (e *checker) decide() []check.Result {
	if !e.Complete() { // what was sent last is not known
		e.found[never] = check.Findings{}
	}
	entries := int(e.entries)
	var results []check.Result
	for _, rule := range []struct {
		name       string
		stateAlone bool   // the end state alone decides it
		history    string // what a history would say that it needs; empty: it needs none
		covered    bool   // it is valid only if the histories of all runs in the log are given
		valid      string
		nothing    bool // there is nothing to check
	}{
		{check.Durable, false, "acknowledged", false, e.allThere(), e.commits == 0},
		{check.NoGhost, false, "sent", true, "Nothing aborted is in the log, and all that is there was sent." + e.tombstones(), false},
		{check.ExactlyOnce, false, "", false, "No event is in the log twice.", e.entries == 0},
		{Whole, true, "", true, check.Plural(entries-int(e.voids), "event") +
			" read back: their checksums are right, and their bytes are those that their writers made.", e.entries == e.voids},
		{Order, false, "acknowledged", true, "All batches stand together, at the acknowledged places, and in the order in which they were acknowledged.", e.commits == 0},
		{Continuous, true, "", false, fmt.Sprintf("%s of %s, and no hole before the end of any.",
			check.Plural(entries, "entry"), check.Plural(e.in.Streams, "stream")), false},
	} {
		r, stop := e.NeedEnd(rule.name)
		r.StateAlone = rule.stateAlone
		r.Required = rule.name != Continuous || e.in.Expect != isolation.ReadUncommitted
		if stop && e.in.End == nil && e.Damage == nil && e.shows(rule.name) {
			r.Detail, stop = "", false
		}
		why := ""
		switch {
		case rule.history != "" && len(e.in.History) == 0:
			why = "there is no history of what was " + rule.history + "; give the run's directory"
		// What a run sent whose recording is not given, in batches of how many events,
		// and where its clients saw them, is not known.
		case rule.covered && e.Foreign() != "":
			why = e.Foreign()
		case rule.name == check.NoGhost && !e.Complete():
			why = "the recording was cut off, so what was sent last is not known"
		case rule.name == Order && e.Apart():
			why = "within each worker the order agrees with real time, but the workers' clocks were not compared"
		case rule.name == Order:
			why = e.Why(e.doubt)
		}
		if !stop {
			if r = r.Decide(e.found[:], why, rule.valid); rule.nothing {
				r = r.Nothing(e.nothing(rule.name, rule.valid))
			}
		}
		results = append(results, r)
	}
	return results
}

// nothing says why a check has nothing to check; valid is what it says else.
func (e *checker) nothing(name, valid string) string {
	switch name {
	case check.Durable:
		return valid
	case Order:
		return "No append was acknowledged."
	}
	return "The log has no event."
}

// allThere says that no acknowledged append is missing, and what became of the unknown.
func (e *checker) allThere() string {
	text := "No append was acknowledged."
	if e.commits > 0 {
		text = fmt.Sprintf("%s acknowledged, and all of their events were read back, whole and byte for byte.", check.Plural(e.commits, e.in.Words.One))
	}
	if e.unknown > 0 {
		text += fmt.Sprintf(" Of %s of unknown outcome the log has %d.", check.Plural(e.unknown, e.in.Words.One), e.applied)
	}
	return text
}

// tombstones says how many entries are tombstones, if any are.
func (e *checker) tombstones() string {
	if e.voids == 0 {
		return ""
	}
	count := "1 is a tombstone"
	if e.voids > 1 {
		count = fmt.Sprintf("%d are tombstones", e.voids)
	}
	return fmt.Sprintf(" Of %s, %s: left by look-ups that closed the place of an append which had not been applied.", check.Plural(int(e.entries), "entry"), count)
}
