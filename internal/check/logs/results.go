package logs

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kind is a kind of violation. Each kind corresponds to one kind of fact.
type kind int

const (
	lost kind = iota
	partly
	spoilt
	ghosts
	closed
	unsent
	extra
	twice
	unexpected
	damaged
	lengths
	torn
	otherStream
	otherPlace
	apart
	behindOwn
	behindLater
	overlapping
	holes
	shared
	ends
	endWriters
	twoEnds
	foreignStreams
	lostStreams
	kinds
)

func noFindings() [kinds]check.Finding {
	return [kinds]check.Finding{
		lost:           {Check: check.Durable},
		partly:         {Check: check.Durable},
		spoilt:         {Check: check.Durable},
		ghosts:         {Check: check.NoGhost},
		closed:         {Check: check.NoGhost},
		unsent:         {Check: check.NoGhost},
		extra:          {Check: check.NoGhost},
		twice:          {Check: check.ExactlyOnce},
		unexpected:     {Check: Whole},
		damaged:        {Check: Whole},
		lengths:        {Check: Whole},
		torn:           {Check: Whole},
		otherStream:    {Check: Order},
		otherPlace:     {Check: Order},
		apart:          {Check: Order},
		behindOwn:      {Check: Order},
		behindLater:    {Check: Order},
		overlapping:    {Check: Order},
		holes:          {Check: Continuous},
		shared:         {Check: Continuous},
		ends:           {Check: Continuous},
		endWriters:     {Check: Continuous},
		twoEnds:        {Check: Continuous},
		foreignStreams: {Check: Continuous},
		lostStreams:    {Check: Continuous},
	}
}

// find records that append i shows a violation, and reports whether it was counted. Several events of one
// append in sequence count once.
func (e *checker) find(of kind, i uint32, what fact.Fact) (counted bool) {
	f, t := &e.found[of], &e.Txns.List[i]
	stream := e.Object(e.places[i].stream)
	e.Show(f.Check, "", t.ID, stream, what)
	if counted = f.Count == 0 || e.latest[of] != t.ID; counted {
		f.Add(what, stream, t.ID)
		if t.Source != check.FromLedger && len(e.in.History) == 1 { // times of several runs are not compared
			f.At(t.End)
		}
	}
	e.latest[of] = t.ID
	return counted
}

// note records that a stream shows a violation, and so does the append id, unless it is 0.
func (e *checker) note(of kind, id history.ID, stream uint64, what fact.Fact) {
	on := e.Object(stream)
	e.Show(e.found[of].Check, "", id, on, what)
	var by []history.ID
	if id != 0 {
		by = []history.ID{id}
	}
	e.found[of].Add(what, on, by...)
}

// member returns append i for use in a fact.
func (e *checker) member(i uint32) fact.Member { return fact.Member{ID: e.Txns.List[i].ID} }

// rule describes the inputs of one check and its result if nothing was found.
type rule struct {
	name       string
	stateAlone bool // the end state decides it without a history
	history    bool // it needs a history
	covered    bool // it is valid only if the histories of all runs in the log were given
	holds      fact.Fact
	nothing    fact.Fact // why there is nothing to check; nil: there is something
}

// rules returns the checks in order.
func (e *checker) rules() []rule {
	events := e.entries - e.voids
	all := fact.LogAppends{Acknowledged: e.commits, Unknown: e.unknown, Applied: e.applied}
	var noAppend, noEvent, noEntry fact.Fact
	if e.commits == 0 {
		noAppend = all
	}
	if events == 0 {
		noEvent = fact.Nothing{Noun: "event", Verb: "found in the log"}
	}
	if e.entries == 0 {
		noEntry = fact.Nothing{Noun: "entry", Verb: "found in the log"}
	}
	return []rule{
		{check.Durable, false, true, false, all, noAppend},
		{check.NoGhost, false, true, true, fact.LogSent{Entries: e.entries, Tombstones: e.voids}, nil},
		{check.ExactlyOnce, false, false, false, fact.LogOnce{}, noEntry},
		{Whole, true, false, true, fact.LogWhole{Events: events}, noEvent},
		{Order, false, true, true, fact.LogOrder{Appends: e.commits}, noAppend},
		{Continuous, true, false, false, fact.LogContinuous{Entries: e.entries, Streams: e.in.Streams}, nil},
	}
}

// decide returns the results of all checks in order. Continuous is not required if dirty reads are allowed:
// an append may then follow one that it saw and that was rolled back.
func (e *checker) decide() (results []check.Result) {
	found := e.found[:]
	if e.Damage != nil {
		found = nil // the findings may come from damage
	}
	if !e.Complete() { // the last requests are not known
		e.found[unsent] = check.Finding{}
	}
	for _, rule := range e.rules() {
		r := check.Result{
			Name: rule.name, StateAlone: rule.stateAlone,
			Required: rule.name != Continuous || e.in.Expect != isolation.ReadUncommitted,
		}
		r = r.Judge(found, e.undecided(&rule), rule.holds).Without(rule.nothing)
		r.Required = r.Required || r.Status == check.Unknown
		results = append(results, r)
	}
	return results
}

// undecided returns the reason why a check without findings is not valid, or nil if it is valid.
func (e *checker) undecided(rule *rule) fact.Fact {
	switch {
	case e.Damage != nil:
		return check.Unreadable(e.Damage)
	case e.in.End == nil:
		return e.NoEnd()
	case rule.history && len(e.in.History) == 0:
		return fact.NoHistory{}
	}
	// For a run without a recording, the sizes of its batches and the positions that its clients saw are not
	// known.
	if rule.covered {
		if others := e.OtherRuns(); others != nil {
			return others
		}
	}
	switch {
	case rule.name == check.NoGhost && !e.Complete():
		return fact.CutOff{}
	case rule.name == Order && e.Apart():
		return fact.ClocksApart{Clocks: e.clocks()}
	case rule.name == Order:
		return e.Uncertain(e.doubt.Count, e.Words.One)
	}
	return nil
}

// clocks returns the number of clocks of the histories.
func (e *checker) clocks() int {
	ids := map[string]bool{}
	for _, c := range e.Clocks {
		ids[c.ID] = true
	}
	return len(ids)
}

// shows reports whether a finding breaks the check.
func (e *checker) shows(name string) bool {
	return slices.ContainsFunc(e.found[:], func(f check.Finding) bool { return f.Check == name && f.Count > 0 })
}
