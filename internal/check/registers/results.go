package registers

import (
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

type kind int

const (
	wrongRead  kind = iota // values that nobody wrote
	dirtyRead              // values of transactions that were refused
	stale                  // values that had been replaced
	lost                   // updates
	hole                   // scans that lack a record of the load, or are out of order
	staleScan              // scans that lack an insert that had been acknowledged
	disordered             // records without an order
	vanished               // acknowledged writes that are not in the end state
	ghosts                 // values in the end state that nobody wrote, or who was refused
	kinds
)

// The anomalies that are no stale ones.
const (
	dirtyName = "dirty read (G1a)"
	lostName  = "lost update (P4)"
)

func noFindings() [kinds]check.Findings {
	return [kinds]check.Findings{
		wrongRead:  {Check: Values},
		dirtyRead:  {Check: Values, Anomaly: dirtyName, Forbidden: isolation.ReadCommitted},
		stale:      {Check: Fresh, Anomaly: "stale read", Forbidden: isolation.StrictSerializable},
		lost:       {Check: NoLostUpdate, Anomaly: lostName, Forbidden: isolation.SnapshotIsolation},
		hole:       {Check: Scans},
		staleScan:  {Check: Scans, Anomaly: "stale scan", Forbidden: isolation.StrictSerializable},
		disordered: {Check: Linearizable},
		vanished:   {Check: check.Durable},
		ghosts:     {Check: check.NoGhost},
	}
}

// find counts a violation that shows in record n. The first of the transactions, if there
// are any, shows it, and the others take part in it.
func (k *checker) find(of kind, n uint64, by []history.ID, format string, args ...any) {
	f := &k.found[of]
	if f.Full() && k.in.OnViolation == nil {
		f.Count++
		return
	}
	text := fmt.Sprintf(format, args...)
	f.Add(text, by...)
	k.report(of, n, finding{text: text, by: by})
}

// report hands over a violation, one at a time.
func (k *checker) report(of kind, n uint64, one finding) {
	if k.in.OnViolation == nil {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	f := &k.found[of]
	found := check.Violation{Check: f.Check, Anomaly: f.Anomaly, Transaction: append(one.by, 0)[0], Account: k.NameToReport(n), What: one.text}
	if one.value != nil {
		found.Pieces = one.value.Pieces
	}
	k.in.OnViolation(found)
}

// record is a record in a sentence, which is made only where the sentence is.
type record struct {
	k *checker
	n uint64
}

func (r record) String() string { return r.k.in.Name(r.n) }

func (k *checker) name(n uint64) record { return record{k, n} }

// writer is who wrote a value, in a sentence.
type writer history.ID

func (w writer) String() string {
	if w == 0 {
		return "the load"
	}
	return history.ID(w).String()
}

func (k *checker) results(problem error) []check.Result {
	// The verdict counts what the claim forbids, and where nobody knows what is claimed,
	// what serializable forbids.
	strict := k.in.Expect == isolation.StrictSerializable
	promised := func(level isolation.Level) bool {
		return k.in.Expect.Includes(level) || k.in.Expect == isolation.Unknown
	}
	only := func(weak, other kind) bool { return k.found[weak].Count > 0 && k.found[other].Count == 0 }
	nothing := func(n uint64, why string) string {
		if n > 0 {
			return ""
		}
		return why
	}
	ends := check.Plural(k.ends, "record")
	var list []check.Result
	for _, rule := range []struct {
		name     string
		required bool
		valid    string
		nothing  string // why there was nothing to check; empty: there was
	}{
		{Values, promised(isolation.ReadCommitted) || !only(dirtyRead, wrongRead),
			check.Plural(k.reads, "value") + " read, each as the load or a transaction had written it.", nothing(k.reads, "No value was read.")},
		{Fresh, strict, "No read returned what an acknowledged write had replaced before.", nothing(k.reads, "No value was read.")},
		{NoLostUpdate, promised(isolation.SnapshotIsolation),
			check.Plural(k.updates, "transaction") + " both read and wrote a record, no two in the place of one value.",
			nothing(k.updates, "No transaction both read and wrote a record.")},
		{Scans, strict || !only(staleScan, hole),
			check.Plural(k.scans, "scan") + ", each in order and with all that was there.", nothing(k.scans, "No scan was made.")},
		{Linearizable, strict,
			"Of " + check.Plural(len(k.keys), "record") + " written the reads and writes of each have an order that agrees with real time.",
			nothing(uint64(len(k.keys)), "No record was written.")},
		{check.Durable, true, ends + ", each with a value that the last acknowledged write allows.", nothing(k.ends, "The end state has no record, and none was to be there.")},
		{check.NoGhost, true, fmt.Sprintf("All values in %s are of the load or of one of %s that nobody refused.", ends, check.Plural(k.writers, "write")), ""},
	} {
		r := check.Result{Name: rule.name, Required: rule.required}.Decide(k.found[:], k.undecided(rule.name, problem), rule.valid).Nothing(rule.nothing)
		if r.Witness = check.Distinct(r.Witness); r.Name == Values {
			r.Broken = k.broken
		}
		list = append(list, r)
	}
	return list
}

// undecided says why a check that found nothing is not valid; empty if it is.
func (k *checker) undecided(name string, problem error) string {
	switch {
	case problem != nil:
		return problem.Error()
	case len(k.in.History) == 0:
		return "there is no history of what the clients saw; give the run's directory"
	case (name == check.Durable || name == check.NoGhost) && k.in.End == nil:
		return k.WhyNoEnd()
	case !k.Complete():
		return "the recording was cut off, so what the last transactions did and saw is not known"
	case k.doubts[name] > 0:
		return k.Doubtful(k.doubts[name], "record")
	case name == Scans && k.in.Records > mostPlaces && k.scanned != nil:
		return fmt.Sprintf("whether scans are complete is not looked at where the load made more than %d records", mostPlaces)
	case name == Scans:
		return ""
	case len(k.foreign) == 1:
		return fmt.Sprintf("values were seen of run %d, whose history was not given: give its directory too", slices.Collect(maps.Keys(k.foreign))[0])
	case len(k.foreign) > 1:
		first := slices.Min(slices.Collect(maps.Keys(k.foreign)))
		return fmt.Sprintf("values were seen of %d runs whose histories were not given, the first of them run %d: give their directories too", len(k.foreign), first)
	case len(k.groups) > 1 && (name == Fresh || name == Linearizable):
		return fmt.Sprintf("within each run nothing contradicts it, but the runs are on %d clocks that were not compared", len(k.groups))
	}
	return ""
}
