package logs

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// find notes that an append shows a violation of a check. An append is counted once in
// a row, however many of its events show it.
func (e *checker) find(name string, f *check.Findings, i uint32, what string) {
	id := e.Txns.List[i].ID
	e.Report(name, "", id, e.NameToReport(e.places[i].stream), what)
	if e.latest == nil {
		e.latest = map[*check.Findings]history.ID{}
	}
	if latest, found := e.latest[f]; !found || latest != id {
		f.Add(fmt.Sprintf("%v %s", id, what), id)
	}
	e.latest[f] = id
}

// note is find for what is shown by a stream. There may be no append.
func (e *checker) note(name string, f *check.Findings, id history.ID, stream uint64, label, what string) {
	e.Report(name, "", id, e.NameToReport(stream), what)
	f.Add(label, id)
}

// rule is how one check is decided: it is invalid where one of its kinds was found.
type rule struct {
	name       string
	stateAlone bool   // the end state alone decides it
	history    string // what a history would tell that it needs; empty: it needs none
	covered    bool   // it is valid only if the histories of all runs in the log are given
	complete   bool   // it is valid only if no history was cut off
	kinds      []kind
	valid      string
}

// kind is a kind of findings with its words; the title has the counted noun in it.
type kind struct {
	*check.Findings
	noun, title string
}

func (e *checker) rules() []rule {
	never := &e.never
	if !e.Complete() {
		never = new(check.Findings) // what was sent last is not known
	}
	entries := int(e.entries)
	return []rule{
		{name: check.Durable, history: "acknowledged", kinds: []kind{
			{&e.lost, "append", "%s acknowledged and lost"},
			{&e.partly, "append", "%s acknowledged and lost in part"},
			{&e.broken, "append", "%s acknowledged and spoilt"},
		}, valid: e.allThere()},
		{name: check.NoGhost, history: "sent", covered: true, complete: true, kinds: []kind{
			{&e.ghosts, "append", "%s reported as not applied, yet in the log"},
			{&e.closed, "append", "%s closed by a look-up, yet applied later"},
			{never, "append", "%s in the log that no client ever sent"},
		}, valid: "Nothing aborted is in the log, and all that is there was sent." + e.tombstones()},
		{name: check.ExactlyOnce, kinds: []kind{
			{&e.twice, "append", "%s applied twice"},
		}, valid: "No event is in the log twice."},
		{name: Whole, stateAlone: true, covered: true, kinds: []kind{
			{&e.strange, "entry", "%s not as anybody wrote it"},
			{&e.lengths, "append", "%s with events of another length"},
			{&e.torn, "append", "%s applied in part"},
		}, valid: fmt.Sprintf("%s read back: their checksums are right, and their bytes are those that their writers made.", check.Plural(entries-int(e.voids), "event"))},
		{name: Order, history: "acknowledged", covered: true, kinds: []kind{
			{&e.elsewhere, "append", "%s at another place than was acknowledged"},
			{&e.apart, "append", "%s whose events do not stand together in their order"},
			{&e.client, "append", "%s behind a later one of the same client"},
			{&e.rt, "append", "%s behind one that began only after it was acknowledged"},
		}, valid: "All batches stand together, where their writers were told, and in the order in which they were acknowledged."},
		{name: Continuous, stateAlone: true, kinds: []kind{
			{&e.holes, "hole", "%s"},
			{&e.shared, "place", "%s with two entries"},
			{&e.ends, "stream", "%s whose end is not where it should be"},
			{&e.absent, "stream", "%s not as the load made them"},
		}, valid: fmt.Sprintf("%s of %s, and no hole before the end of any.", check.Plural(entries, "entry"), check.Plural(e.in.Streams, "stream"))},
	}
}

// decide makes the result of a check. Continuous is not required where dirty reads are
// allowed: an append then may stand behind one that it has seen and that was rolled
// back.
func (e *checker) decide(rule rule) check.Result {
	r, stop := e.NeedEnd(rule.name)
	r.StateAlone = rule.stateAlone
	r.Required = rule.name != Continuous || e.in.Expect != isolation.ReadUncommitted
	if stop {
		return r
	}
	var lines []string
	for _, k := range rule.kinds {
		if k.Count > 0 {
			lines = append(lines, fmt.Sprintf(k.title, check.Plural(k.Count, k.noun))+": "+k.String()+".")
			r.Witness = append(r.Witness, k.IDs...)
		}
	}
	why := ""
	switch {
	case len(lines) > 0:
		r.Status, r.Detail = check.Invalid, strings.Join(lines, "\n")
		return r
	case rule.history != "" && len(e.in.History) == 0:
		why = "there is no history of what was " + rule.history + "; give the run's directory"
	// What a run sent whose recording is not given, in batches of how many events,
	// and where it was told that they stand, nobody knows.
	case rule.covered && e.Foreign() != "":
		why = e.Foreign()
	case rule.complete && !e.Complete():
		why = "the recording was cut off, so what was sent last is not known"
	default:
		r.Status, r.Detail = check.Valid, rule.valid
		return r
	}
	r.Detail = "Not decided: " + why + "."
	return r
}

// allThere says that no acknowledged append is missing, and what became of the unknown.
func (e *checker) allThere() string {
	text := "No append was acknowledged, so that none can be missing."
	if e.commits > 0 {
		text = fmt.Sprintf("%s acknowledged, and all of their events were read back, whole and byte for byte.", check.Plural(e.commits, "append"))
	}
	if e.unknown > 0 {
		text += fmt.Sprintf(" Of %s of unknown outcome the log has %d.", check.Plural(e.unknown, "append"), e.applied)
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
