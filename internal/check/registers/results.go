package registers

import (
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kind is a kind of violations. All violations of a kind are stated by one kind of fact.
type kind int

const (
	foreignKey   kind = iota // keys that nobody makes
	damaged                  // values that nobody wrote like this
	unwritten                // values of transactions that wrote nothing there
	otherLength              // values of another length than was written
	missing                  // records of the load that were not found
	dirtyRead                // values of transactions that were refused
	stale                    // values that had been replaced
	lost                     // updates
	scanOrder                // scans that are out of order
	scanCount                // scans that return too much
	scanLoaded               // scans that lack a record of the load
	staleScan                // scans that lack an insert that had been acknowledged
	disordered               // records without an order
	endMissing               // records of the load that are not in the end state
	endRepeated              // records of the load that are there twice
	endDamaged               // values in the end state that nobody wrote like this
	endLength                // values in the end state of another length than was written
	vanished                 // acknowledged writes that are not in the end state
	unexpected               // what nobody makes in the end state
	endUnwritten             // values in the end state of transactions that wrote nothing there
	endRefused               // values in the end state of transactions that were refused
	kinds
)

// The anomalies that are no stale ones.
const (
	dirtyName = "dirty read (G1a)"
	lostName  = "lost update (P4)"
)

func noFindings() [kinds]check.Finding {
	return [kinds]check.Finding{
		foreignKey:   {Check: Values},
		damaged:      {Check: Values},
		unwritten:    {Check: Values},
		otherLength:  {Check: Values},
		missing:      {Check: Values},
		dirtyRead:    {Check: Values, Anomaly: dirtyName, Forbidden: isolation.ReadCommitted},
		stale:        {Check: Fresh, Anomaly: "stale read", Forbidden: isolation.StrictSerializable},
		lost:         {Check: NoLostUpdate, Anomaly: lostName, Forbidden: isolation.SnapshotIsolation},
		scanOrder:    {Check: Scans},
		scanCount:    {Check: Scans},
		scanLoaded:   {Check: Scans},
		staleScan:    {Check: Scans, Anomaly: "stale scan", Forbidden: isolation.StrictSerializable},
		disordered:   {Check: Linearizable, Forbidden: isolation.StrictSerializable},
		endMissing:   {Check: check.Durable},
		endRepeated:  {Check: check.Durable},
		endDamaged:   {Check: check.Durable},
		endLength:    {Check: check.Durable},
		vanished:     {Check: check.Durable},
		unexpected:   {Check: check.NoGhost},
		endUnwritten: {Check: check.NoGhost},
		endRefused:   {Check: check.NoGhost},
	}
}

// find counts a violation that shows in record n, outside of all workers.
func (k *checker) find(of kind, n uint64, make func() finding) {
	f := &k.found[of]
	if f.Full() && k.in.OnViolation == nil {
		f.Count++
		return
	}
	one := k.complete(n, make())
	f.Add(one.what, one.on, one.by...)
	k.report(of, one)
}

// complete adds to a violation the record in which it shows.
func (k *checker) complete(n uint64, one finding) finding {
	if n != noRecord {
		one.on = k.Object(n)
	}
	return one
}

// report hands over a violation, one at a time.
func (k *checker) report(of kind, one finding) {
	if k.in.OnViolation == nil {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	f := &k.found[of]
	found := check.Violation{Check: f.Check, Anomaly: f.Anomaly, Transaction: append(one.by, 0)[0], Account: string(one.on), Fact: one.what}
	if one.value != nil {
		found.Pieces = one.value.Pieces
	}
	k.in.OnViolation(found)
}

// member returns a transaction as facts have it.
func (k *checker) member(id history.ID, kind history.Kind) fact.Member {
	return fact.Member{ID: id, Kind: k.names[kind]}
}

func (k *checker) reader(s *seen) fact.Member { return k.member(s.by, s.kind) }

// writer returns who wrote; the id 0 is the load.
func (k *checker) writer(w *write) fact.Member { return k.member(w.id, w.kind) }

// writerAt returns who gave record n the value of an id.
func (k *checker) writerAt(n uint64, id history.ID) fact.Member {
	if w := k.writeOn(n, id); w != nil {
		return k.writer(w)
	}
	return fact.Member{ID: id}
}

// inexact reports whether a time between two transactions is known only as a least one.
func (k *checker) inexact() bool { return k.Uncertainty() > 0 }

// rule is what one check states if nothing was found.
type rule struct {
	name     string
	required bool
	holds    fact.Fact
	nothing  fact.Fact // why there was nothing to check; nil: there was
}

// nothing returns that no thing of a kind was there, unless some were.
func nothing(n uint64, noun, verb string) fact.Fact {
	if n > 0 {
		return nil
	}
	return fact.Nothing{Noun: noun, Verb: verb}
}

// rules returns what the checks state, in their order. The verdict counts what the claim forbids,
// and if nobody knows what is claimed, what serializable forbids.
func (k *checker) rules() []rule {
	strict := k.in.Expect == isolation.StrictSerializable
	promised := func(level isolation.Level) bool {
		return k.in.Expect.Includes(level) || k.in.Expect == isolation.Unknown
	}
	return []rule{
		{Values, promised(isolation.ReadCommitted) || !k.only(dirtyRead), fact.RegisterValues{Values: k.values},
			nothing(k.values, "value", "read")},
		{Fresh, strict, fact.RegisterFresh{}, nothing(k.observed, "record", "read")},
		{NoLostUpdate, promised(isolation.SnapshotIsolation), fact.RegisterUpdates{Updates: k.updates},
			nothing(k.updates, "record", "both read and written")},
		{Scans, strict || !k.only(staleScan), fact.RegisterScans{Scans: k.scans}, nothing(k.scans, "scan", "made")},
		{Linearizable, strict, fact.RegisterOrder{Records: len(k.keys)}, nothing(uint64(len(k.keys)), "record", "written")},
		{check.Durable, true, fact.RegisterEnd{Records: k.ends},
			nothing(k.ends, "record", "in the end state, and none had to be there")},
		{check.NoGhost, true, fact.RegisterWritten{Records: k.ends, Writes: k.writers}, nil},
	}
}

// only reports whether violations of a kind were found, and none of its check's other kinds.
func (k *checker) only(of kind) bool {
	for other := range kinds {
		if other != of && k.found[other].Count > 0 && k.found[other].Check == k.found[of].Check {
			return false
		}
	}
	return k.found[of].Count > 0
}

func (k *checker) results(problem error) (list []check.Result) {
	for _, rule := range k.rules() {
		r := check.Result{Name: rule.name, Required: rule.required}
		list = append(list, r.Judge(k.found[:], k.undecided(rule.name, problem), rule.holds).Without(rule.nothing))
	}
	return list
}

// undecided returns why a check that found nothing is not valid; nil if it is.
func (k *checker) undecided(name string, problem error) fact.Fact {
	switch {
	case problem != nil:
		return check.Unreadable(problem)
	case len(k.in.History) == 0:
		return fact.NoHistory{}
	case (name == check.Durable || name == check.NoGhost) && k.in.End == nil:
		return k.NoEnd()
	case !k.Complete():
		return fact.CutOff{}
	case k.doubts[name] > 0:
		return k.Uncertain(k.doubts[name], "record")
	case name == Scans && k.in.Records > mostPlaces && k.scanned != nil:
		return fact.RegisterTooMany{Most: mostPlaces}
	case name == Scans:
		return nil
	case len(k.foreign) > 0:
		runs := slices.Sorted(maps.Keys(k.foreign))
		shown := runs[:min(len(runs), check.Shown)]
		return fact.RegisterOtherRuns{Runs: shown, More: len(runs) - len(shown)}
	case len(k.groups) > 1 && (name == Fresh || name == Linearizable):
		return fact.ClocksApart{Clocks: len(k.groups)}
	}
	return nil
}
