// Package cause ranks the findings of checks. It decides which finding is the cause, which findings follow
// from it, and who is responsible. It works on values only; package check/text has the sentences.
package cause

import (
	"cmp"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
)

// Kind classifies a violation, the gravest kind first. The zero value is unknown.
type Kind uint8

const (
	Unknown          Kind = iota
	LostWrites            // acknowledged transactions are missing
	AlteredWrites         // transactions are present in part, or not as they were sent
	DoubleWrites          // transactions were applied more than once
	GhostWrites           // aborted or rejected transactions are present
	ForeignData           // data that no recorded transaction wrote is present
	LostUpdates           // transactions overwrote each other's writes
	BrokenOrder           // the order of transactions breaks an isolation level
	WrongValues           // a value that was read or stored was never written
	WrongSums             // the data does not add up
	BrokenInvariants      // an invariant of the user does not hold
	Divergence            // nodes hold different data
	Kinds
)

var kinds = [Kinds]string{"unknown", "lost-writes", "altered-writes", "double-writes", "ghost-writes", "foreign-data",
	"lost-updates", "broken-order", "wrong-values", "wrong-sums",
	"broken-invariants", "divergence"}

func (k Kind) String() string { return kinds[k] }

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// KindOf returns the kind of a finding.
func KindOf(f *check.Finding) Kind {
	if len(f.Instances) > 0 {
		switch f.Instances[0].(type) {
		case fact.Altered, fact.LogLostPart, fact.LogSpoilt, fact.LogTorn, fact.RegisterEndDamaged, fact.RegisterEndLength:
			return AlteredWrites
		case fact.NeverSent, fact.ForeignRow, fact.ForeignLeg, fact.ForeignAmounts, fact.LogUnsent, fact.LogExtraEvent,
			fact.RegisterUnexpected, fact.RegisterEndUnwritten, fact.RegisterEndRepeated,
			fact.ListForeign, fact.ListUnexpected:
			return ForeignData
		case fact.RegisterNoOrder, fact.LogApart, fact.LogBehindOwn, fact.LogBehindLater, fact.LogOverlap:
			return BrokenOrder
		case fact.GarbageRead:
			return WrongSums
		}
	}
	switch {
	case strings.HasPrefix(f.Anomaly, "lost update"):
		return LostUpdates
	case f.Anomaly != "":
		return BrokenOrder
	}
	switch f.Check {
	case check.Durable:
		return LostWrites
	case check.ExactlyOnce:
		return DoubleWrites
	case check.NoGhost:
		return GhostWrites
	case check.Serializable, check.Strict:
		return BrokenOrder
	case check.Total, check.Ledger, check.NonNegative, check.Audits, check.Limit:
		return WrongSums
	case check.Invariants:
		return BrokenInvariants
	case check.Replicas:
		return Divergence
	}
	return WrongValues
}

// Found is a finding with its rank.
type Found struct {
	*check.Finding
	Kind     Kind
	Required bool   // the verdict counts its check
	Of       *Found // the finding that explains this one; nil: none
}

// Ranking holds the findings of a run's checks in order.
type Ranking struct {
	First *Found  // the cause; nil: no required check found a violation
	Then  []Found // the others, those without an explanation first
}

// Rank ranks the findings of results. The cause is the gravest finding that no other one explains. It must be
// required by the verdict or explain a required finding.
func Rank(results []check.Result) Ranking {
	var list []*Found
	for i := range results {
		r := &results[i]
		if r.Status != check.Invalid {
			continue
		}
		for j := range r.Findings {
			list = append(list, &Found{Finding: &r.Findings[j], Kind: KindOf(&r.Findings[j]), Required: r.Required})
		}
	}
	slices.SortStableFunc(list, func(a, b *Found) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(weight(a.Forbidden), weight(b.Forbidden)))
	})
	for _, f := range list {
		f.Of = explains(list, f)
	}
	var ranking Ranking
	for _, f := range list {
		if f.Of == nil && (f.Required || explainsRequired(list, f)) {
			ranking.First = f
			break
		}
	}
	if ranking.First == nil {
		return ranking
	}
	for _, explained := range []bool{false, true} {
		for _, f := range list {
			if f != ranking.First && (f.Of != nil) == explained && (f.Required || f.Of != nil) {
				ranking.Then = append(ranking.Then, *f)
			}
		}
	}
	return ranking
}

// weight returns the rank of a finding among findings of one kind. A finding is graver if a weaker level
// forbids it.
func weight(l isolation.Level) int {
	if l == isolation.Unknown {
		return -1
	}
	return int(l)
}

// explains returns the finding of a list that explains f, or nil if there is none. A finding is explained
// only if all of its violations concern what the other finding found.
func explains(list []*Found, f *Found) *Found {
	for _, by := range list {
		switch {
		case by == f || by.Kind > f.Kind:
		case by.Kind == LostWrites && f.Kind != LostWrites && f.Count > 0 && f.OfLost == f.Count,
			by.Kind == LostUpdates && f.Kind != LostUpdates && f.Count > 0 && f.OfLostUpdate == f.Count,
			by.Check == check.Serializable && f.Finding.Kind() == fact.NotSerializable{}.Fact():
			return by
		}
	}
	return nil
}

func explainsRequired(list []*Found, by *Found) bool {
	return slices.ContainsFunc(list, func(f *Found) bool { return f.Required && f.Of == by })
}
