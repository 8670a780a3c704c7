package text

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

const (
	garbageRead = "{Reader} read balance {Balance} at version {Version} of {Object}, where opening balance and "
	oddRead     = "{Reader} read version {Version} of {Object} as made by "
)

var orderClauses = []wording{
	{fact.ReadAs{}, "transaction {Reader id} read version {Version} of {Object} with the balance {Balance}, " +
		"as made by {Writer or the load}"},
	{fact.GarbageRead{Ended: true}, garbageRead + "{book} make {Want}: no transaction wrote that"},
	{fact.GarbageRead{}, garbageRead + "recorded changes make {Want}: no transaction wrote that"},
	{fact.OddRead{Fate: fact.NotApplied, Ended: true},
		oddRead + "{Writer}, which was {Outcome!} and is not in the {book}"},
	{fact.OddRead{Fate: fact.NotApplied, Ended: true},
		oddRead + "{Writer}, which is of unknown outcome and is not in the {book}"},
	{fact.OddRead{Fate: fact.NotApplied}, oddRead + "{Writer}, which was {Outcome!}"},
	{fact.OddRead{Fate: fact.NotApplied}, oddRead + "{Writer}, which is of unknown outcome"},
	{fact.OddRead{Fate: fact.Vanished, Ended: true},
		oddRead + "{Writer}, which was acknowledged and is not in the {book}"},
	{fact.OddRead{Fate: fact.Vanished}, oddRead + "{Writer}, which was acknowledged"},
	{fact.OddRead{Fate: fact.AppliedAs, Aborted: true},
		oddRead + "{Writer}, which was {Outcome}, and is in the {book} as the maker of version {As}"},
	{fact.OddRead{Fate: fact.AppliedAs, Ended: true},
		oddRead + "{Writer}, which made version {As} of it by the {book}"},
	{fact.OddRead{Fate: fact.AppliedAs}, oddRead + "{Writer}, which made version {As} of it"},
	{fact.OddRead{Fate: fact.AppliedLater},
		oddRead + "{Writer}, which was applied there only later, as version {As}"},
	{fact.OddRead{Fate: fact.MadeNot}, oddRead + "{Writer}, which did not make that version"},
	{fact.OddRead{}, oddRead + "{Writer}, which no client sent"},
	{fact.Component{}, "{By} is one of {All ,} transactions, each of which must come before all the others"},
	{fact.Serial{}, "{Transactions committed transaction}, {Dependencies dependency}, no cycle"},
	{fact.WithRealTime{}, "the order of all transactions agrees with real time"},
	{fact.NotSerializable{},
		"the history is not serializable, so it is not strictly serializable either: see the check serializable"},
	{fact.NoOrder{}, "no transaction was applied, so there is no order"},
}

// order returns the clause of a fact about the order of transactions that needs more than a wording; empty for others.
func (s Speaker) order(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LostUpdate:
		return fmt.Sprintf("%s and %s both read version %d of %s and both made version %d, so the effect of one of them is gone",
			s.Member(f.First), s.Member(f.Second), f.Version-1, s.On(f.Object), f.Version)
	case fact.OddRead:
		if f.Writer.ID == 0 {
			return s.fill(oddRead+"the load, which made only version 0", f)
		}
	case fact.GarbageRead:
		if f.Version == 0 {
			return s.fill("{Reader} read balance {Balance} at version 0 of {Object}, whose opening balance is {Want}", f)
		}
	case fact.Dependency:
		return s.dependency(f)
	case fact.Cycle:
		return s.cycle(f)
	case fact.Operation:
		return s.operation(f)
	}
	return ""
}

// dependency states one step, starting with the transaction that must come first.
func (s Speaker) dependency(f fact.Dependency) string {
	did, then := "made", "read"
	switch f.Kind {
	case "predicate":
		if f.Low != 0 {
			return s.fill("{From} read by predicate and did not find {Object} among the accounts under {Low}, "+
				"which {To} brought under it", f)
		}
		return s.fill("{From} read by predicate and did not find {Object}, which {To} opened", f)
	case check.RealTime.String():
		return s.fill("{From} had ended {Apart} before {To} began", f)
	case check.ReadWrite.String():
		did, then = "read", "overwrote"
	case check.WriteWrite.String():
		then = "overwrote"
	}
	if f.Object == "" {
		return s.fill("{From} "+did+" a version that {To} "+then, f)
	}
	return s.fill("{From} "+did+" version {Version} of {Object}, which {To} "+then, f)
}

func anti(d fact.Dependency) bool { return d.Kind == check.ReadWrite.String() || d.Kind == "predicate" }

// cycle describes a cycle. A cycle of two or four steps with a well-known shape has its own sentence.
func (s Speaker) cycle(f fact.Cycle) string {
	steps := f.Steps
	first := slices.IndexFunc(steps, anti)
	real := slices.IndexFunc(steps, func(d fact.Dependency) bool { return d.Kind == check.RealTime.String() })
	switch {
	case f.All == 2 && real >= 0:
		return fmt.Sprintf("%s, although %s", s.dependency(steps[1-real]), s.dependency(steps[real]))
	case f.All == 2 && first >= 0 && steps[1-first].Kind == check.WriteRead.String():
		return fmt.Sprintf("%s saw one part of %s without the other: %s, and %s",
			s.Member(steps[first].From), s.Member(steps[first].To), s.dependency(steps[1-first]), s.dependency(steps[first]))
	case f.All == 2 && anti(steps[0]) && anti(steps[1]):
		return fmt.Sprintf("%s: %s, and %s", s.unseen(steps[0].From.Kind, steps[1].From.Kind), s.dependency(steps[0]), s.dependency(steps[1]))
	case f.All == 2:
		return s.dependency(steps[0]) + ", and " + s.dependency(steps[1])
	case fork(steps, f.All):
		one, other := steps[first], steps[(first+2)%4]
		return fmt.Sprintf("%s saw %s without %s, and %s saw %s without %s",
			s.Member(one.From), s.Member(other.To), s.Member(one.To), s.Member(other.From), s.Member(one.To), s.Member(other.To))
	}
	if first < 0 {
		first = 0
	}
	d := steps[first]
	rest := ""
	if n := f.All - 2; n > 0 {
		rest = fmt.Sprintf(", by way of %s", check.Plural(n, "other transaction"))
	}
	if anti(d) && real < 0 {
		return fmt.Sprintf("%s, and yet %s depends on %s%s", s.dependency(d), s.Member(d.From), s.Member(d.To), rest)
	}
	return fmt.Sprintf("%s, and yet %s must come before %s%s", s.dependency(d), s.Member(d.To), s.Member(d.From), rest)
}

// unseen states that neither of two transactions of these kinds saw the other's write, and which condition
// both had checked before they wrote.
func (s Speaker) unseen(one, other string) string {
	if rule := s.Words.Rules[one]; rule != "" && one == other {
		return fmt.Sprintf("each of two %ss %s; neither saw what the other one wrote", one, rule)
	}
	return "neither of two transactions saw what the other one wrote"
}

// fork reports whether a cycle is a long fork: two transactions each saw a different one of two writes.
func fork(steps []fact.Dependency, all int) bool {
	first := slices.IndexFunc(steps, anti)
	return all == 4 && len(steps) == 4 && first >= 0 && anti(steps[(first+2)%4]) &&
		steps[(first+1)%4].Kind == check.WriteRead.String() && steps[(first+3)%4].Kind == check.WriteRead.String()
}

// operation summarizes what a transaction read and wrote of an object.
func (s Speaker) operation(f fact.Operation) string {
	var parts []string
	if f.Read {
		parts = append(parts, fmt.Sprintf("read version %d, %s", f.Version, s.Amount(f.Balance)))
	}
	switch {
	case f.Wrote && f.Read && f.Made == f.Version+1:
		parts = append(parts, fmt.Sprintf("made version %d, %s", f.Made, s.Amount(f.Balance+f.Amount)))
	case f.Wrote && f.Read: // another transaction wrote between the read and the write
		parts = append(parts, fmt.Sprintf("made version %d, changed by %s", f.Made, s.Amount(f.Amount)))
	case f.Wrote:
		parts = append(parts, "changed it by "+s.Amount(f.Amount)+", and what it read is not known")
	case !f.Read:
		parts = append(parts, "what it read is not known")
	}
	text := strings.Join(parts, "; ")
	if f.Object != "" {
		text = string(f.Object) + ": " + text
	}
	return text
}
