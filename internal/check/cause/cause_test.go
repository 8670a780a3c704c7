package cause

import (
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

func finding(name, anomaly string, forbidden isolation.Level, count int, what fact.Fact) check.Finding {
	return check.Finding{Check: name, Anomaly: anomaly, Forbidden: forbidden, Count: count, Instances: []fact.Fact{what}}
}

func invalid(required bool, list ...check.Finding) check.Result {
	return check.Result{Name: list[0].Check, Status: check.Invalid, Required: required, Findings: list}
}

var (
	lost       = finding(check.Durable, "", isolation.Unknown, 7, fact.Lost{By: history.NewID(1, 2, 3)})
	dirty      = finding(check.Serializable, "dirty read (G1a)", isolation.ReadCommitted, 5, fact.OddRead{})
	lostUpdate = finding(check.Serializable, "lost update (P4)", isolation.SnapshotIsolation, 3, fact.LostUpdate{})
	sum        = finding(check.Total, "", isolation.Unknown, 1, fact.Sum{})
	books      = finding(check.Ledger, "", isolation.Unknown, 3, fact.Books{})
	skew       = finding(check.Serializable, "write skew (G2-item)", isolation.Serializable, 2, fact.Cycle{})
	garbage    = finding(check.Serializable, "garbage read", isolation.ReadCommitted, 2, fact.GarbageRead{Ended: true})
	unended    = finding(check.Serializable, "garbage read", isolation.ReadCommitted, 2, fact.GarbageRead{})
	notStrict  = finding(check.Strict, "", isolation.Unknown, 1, fact.NotSerializable{})
)

func explained(f check.Finding, ofLost, ofLostUpdate int) check.Finding {
	f.OfLost, f.OfLostUpdate = ofLost, ofLostUpdate
	return f
}

// TestRankNeedsEvidence checks that the cause comes first and that a finding is explained only by evidence.
func TestRankNeedsEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		results   []check.Result
		first     Kind
		explained int // number of other findings
		others    int
	}{
		"lost writes before their dirty reads": {[]check.Result{invalid(true, explained(dirty, 5, 0)), invalid(true, lost)}, LostWrites, 1, 1},
		"a dirty read of something else":       {[]check.Result{invalid(true, explained(dirty, 4, 0)), invalid(true, lost)}, LostWrites, 0, 1},
		"a lost update before the money": {
			[]check.Result{invalid(true, explained(sum, 0, 1)), invalid(true, explained(books, 0, 3)), invalid(false, lostUpdate)}, LostUpdates, 2, 2},
		"money that it does not explain": {
			[]check.Result{invalid(true, sum), invalid(false, lostUpdate)}, WrongSums, 0, 0},
		"an anomaly that is not claimed explains nothing": {[]check.Result{invalid(false, skew), invalid(true, lost)}, LostWrites, 0, 0},
		"the weaker level first":                          {[]check.Result{invalid(true, skew, dirty)}, BrokenOrder, 0, 1},
		"stored balances before balances that were read":  {[]check.Result{invalid(true, garbage), invalid(true, books)}, WrongSums, 0, 1},
		"strict follows":                                  {[]check.Result{invalid(true, skew), invalid(true, notStrict)}, BrokenOrder, 1, 1},
	} {
		got := Rank(tc.results)
		if got.First == nil || got.First.Kind != tc.first {
			t.Errorf("%s: the cause is %+v, want %v", name, got.First, tc.first)
			continue
		}
		n := 0
		for _, f := range got.Then {
			if f.Of != nil {
				n++
			}
		}
		if n != tc.explained || len(got.Then) != tc.others {
			t.Errorf("%s: %d of %d others are explained, want %d of %d", name, n, len(got.Then), tc.explained, tc.others)
		}
	}
	if got := Rank([]check.Result{invalid(true, skew, dirty)}); got.First.Anomaly != dirty.Anomaly {
		t.Errorf("of two anomalies the cause is %s", got.First.Anomaly)
	}
	if got := Rank([]check.Result{invalid(true, garbage), invalid(true, books)}); got.First.Finding.Kind() != books.Kind() {
		t.Errorf("before the stored balances comes %s", got.First.Anomaly)
	}
	if got := Rank([]check.Result{{Name: check.Total, Status: check.Valid, Required: true}, invalid(false, skew)}); got.First != nil {
		t.Errorf("a violation that is not claimed is a cause: %+v", got.First)
	}
}

func TestJudgeNamesTheResponsible(t *testing.T) {
	levels := []IsolationLevel{{"read committed", isolation.ReadCommitted}, {"repeatable read", isolation.SnapshotIsolation}, {"serializable", isolation.Serializable}}
	at := func(level, expect isolation.Level) Promise {
		return Promise{Database: "PostgreSQL", Isolation: "an isolation", Level: level, Source: "manual", Expect: expect, Levels: levels}
	}
	durable, caveat := at(isolation.ReadCommitted, isolation.ReadCommitted), at(isolation.ReadCommitted, isolation.ReadCommitted)
	durable.Durable = "manual"
	caveat.Durable, caveat.Caveats = "manual", []Caveat{{Setting: "w=1"}}
	rmw := Style{Update: "rmw", Unsafe: true, Safe: "locked"}
	for name, tc := range map[string]struct {
		found   check.Finding
		promise Promise
		style   Style
		want    Culprit
	}{
		"lost writes":                           {lost, durable, Style{}, Database},
		"lost writes with a caveat":             {lost, caveat, Style{}, Configuration},
		"lost writes, and no promise":           {lost, at(isolation.ReadCommitted, isolation.ReadCommitted), Style{}, NotDecided},
		"a lost update that the level forbids":  {lostUpdate, at(isolation.SnapshotIsolation, isolation.SnapshotIsolation), rmw, Database},
		"a lost update of read-modify-write":    {lostUpdate, at(isolation.ReadCommitted, isolation.ReadCommitted), rmw, Application},
		"a lost update of a safe style":         {lostUpdate, at(isolation.ReadCommitted, isolation.ReadCommitted), Style{Update: "atomic"}, NotDecided},
		"a dirty read at read committed":        {dirty, at(isolation.ReadCommitted, isolation.ReadCommitted), rmw, Database},
		"write skew that --expect asked about":  {skew, at(isolation.SnapshotIsolation, isolation.Serializable), Style{}, Configuration},
		"write skew at serializable":            {skew, at(isolation.Serializable, isolation.Serializable), Style{}, Database},
		"a garbage read, and the books close":   {garbage, durable, Style{}, Database},
		"a garbage read without an end state":   {unended, durable, Style{}, NotDecided},
		"a wrong sum":                           {sum, durable, Style{}, NotDecided},
		"a violation and nothing that is known": {skew, Promise{}, Style{}, NotDecided},
	} {
		f := Found{Finding: &tc.found, Kind: KindOf(&tc.found)}
		if got := Judge(&f, tc.promise, tc.style); got.Culprit != tc.want {
			t.Errorf("%s: %v, want %v", name, got.Culprit, tc.want)
		}
	}
	f := Found{Finding: &lostUpdate, Kind: LostUpdates}
	if got := Judge(&f, at(isolation.ReadCommitted, isolation.ReadCommitted), rmw); len(got.Isolations) != 2 {
		t.Errorf("%v forbid a lost update, want two of three", got.Isolations)
	}
}
