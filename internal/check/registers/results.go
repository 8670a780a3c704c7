package registers

import (
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kind is a kind of violation. Each kind corresponds to one kind of fact.
type kind int

const (
	foreignKey   kind = iota // keys that no transaction makes
	damaged                  // values that no transaction wrote in this form
	unwritten                // values whose named writer did not write the record
	otherLength              // values of the wrong length
	missing                  // records of the load that were not found
	dirtyRead                // values of transactions that were refused
	stale                    // values that had been replaced
	lost                     // lost updates
	scanOrder                // scans that are out of order
	scanCount                // scans that return too much
	scanLoaded               // scans that lack a record of the load
	staleScan                // scans that omit an insert that had been acknowledged
	disordered               // records without an order
	endMissing               // records of the load that are missing in the end state
	endRepeated              // records of the load that occur twice
	endDamaged               // final values that no transaction wrote in this form
	endLength                // final values of the wrong length
	vanished                 // acknowledged writes that are missing in the end state
	unexpected               // rows in the end state that no transaction makes
	endUnwritten             // final values whose named writer did not write the record
	endRefused               // final values of refused transactions
	kinds
)

// These anomalies are not stale reads.
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

// find counts a violation in record n outside of the workers.
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

// complete adds the record to a violation.
func (k *checker) complete(n uint64, one finding) finding {
	if n != noRecord {
		one.on = k.Object(n)
	}
	return one
}

// report passes on a violation. It serializes concurrent calls.
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

// member returns a transaction for use in a fact.
func (k *checker) member(id history.ID, kind history.Kind) fact.Member {
	return fact.Member{ID: id, Kind: k.names[kind]}
}

func (k *checker) reader(s *seen) fact.Member { return k.member(s.by, s.kind) }

// writer returns the transaction of a write; ID 0 is the load.
func (k *checker) writer(w *write) fact.Member { return k.member(w.id, w.kind) }

// writerAt returns the transaction that wrote an ID's value to record n.
func (k *checker) writerAt(n uint64, id history.ID) fact.Member {
	if w := k.writeOn(n, id); w != nil {
		return k.writer(w)
	}
	return fact.Member{ID: id}
}

// inexact reports whether the times between transactions are known only as lower bounds.
func (k *checker) inexact() bool { return k.Uncertainty() > 0 }

// rule describes one check: its result if nothing was found.
type rule struct {
	name     string
	required bool
	holds    fact.Fact
	nothing  fact.Fact // the reason why there was nothing to check; nil: there was something
}

// nothing returns the fact that no thing of a kind exists, or nil if n is not 0.
func nothing(n uint64, noun, verb string) fact.Fact {
	if n > 0 {
		return nil
	}
	return fact.Nothing{Noun: noun, Verb: verb}
}

// rules returns the rules of all checks in order. The verdict counts what the claim forbids. If no claim is
// known, it counts what serializable forbids.
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

// only reports whether violations of a kind were found, but none of its check's other kinds.
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

// undecided returns the reason why a check without findings is not valid, or nil if it is valid.
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
