package text

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// order returns the clause of a fact about the order of transactions; empty for others.
func (s Speaker) order(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LostUpdate:
		return fmt.Sprintf("%s and %s both read version %d of %s and both made version %d, so the effect of one of them is gone",
			s.Member(f.First), s.Member(f.Second), f.Version-1, s.On(f.Object), f.Version)
	case fact.OddRead:
		return s.oddRead(f)
	case fact.ReadAs:
		writer := "the load"
		if f.Writer != 0 {
			writer = s.id(f.Writer)
		}
		return fmt.Sprintf("transaction %v read version %d of %s with the balance %s, as made by %s", f.Reader, f.Version, s.On(f.Object), s.Amount(f.Balance), writer)
	case fact.GarbageRead:
		return s.garbageRead(f)
	case fact.Dependency:
		return s.dependency(f)
	case fact.Cycle:
		return s.cycle(f)
	case fact.Component:
		return fmt.Sprintf("%s is one of %s transactions, each of which must come before all the others", s.id(f.By), check.Group(f.All))
	case fact.Operation:
		return s.operation(f)
	case fact.Serial:
		return fmt.Sprintf("%s, %s, no cycle", check.Plural(f.Transactions, "committed transaction"), check.Plural(f.Dependencies, "dependency"))
	case fact.WithRealTime:
		return "the order of all transactions agrees with real time"
	case fact.NotSerializable:
		return "the history is not serializable, so it is not strictly serializable either: see the check serializable"
	case fact.NoOrder:
		return "no transaction was applied, so there is no order"
	}
	return ""
}

func (s Speaker) garbageRead(f fact.GarbageRead) string {
	read := fmt.Sprintf("%s read balance %s at version %d of %s", s.Member(f.Reader), s.Amount(f.Balance), f.Version, s.On(f.Object))
	switch {
	case f.Version == 0:
		return fmt.Sprintf("%s, whose opening balance is %s", read, s.Amount(f.Want))
	case !f.Ended:
		return fmt.Sprintf("%s, where opening balance and recorded changes make %s: no transaction wrote that", read, s.Amount(f.Want))
	}
	return fmt.Sprintf("%s, where opening balance and %s make %s: no transaction wrote that", read, s.book(), s.Amount(f.Want))
}

func (s Speaker) oddRead(f fact.OddRead) string {
	read := fmt.Sprintf("%s read version %d of %s as made by ", s.Member(f.Reader), f.Version, s.On(f.Object))
	if f.Writer.ID == 0 {
		return read + "the load, which made only version 0"
	}
	return read + s.Member(f.Writer) + ", which " + s.fate(f)
}

// fate explains why a version should not have existed.
func (s Speaker) fate(f fact.OddRead) string {
	there := ""
	if f.Ended {
		there = " and is not in the " + s.book()
	}
	switch f.Fate {
	case fact.NotApplied:
		if f.Outcome == history.Unknown {
			return "is of unknown outcome" + there
		}
		return "was " + f.Outcome.String() + there
	case fact.Vanished:
		return "was acknowledged" + there
	case fact.AppliedAs:
		if f.Aborted {
			return fmt.Sprintf("was %v, and is in the %s as the maker of version %d", f.Outcome, s.book(), f.As)
		}
		made := fmt.Sprintf("made version %d of it", f.As)
		if f.Ended {
			made += " by the " + s.book()
		}
		return made
	case fact.AppliedLater:
		return fmt.Sprintf("was applied there only later, as version %d", f.As)
	case fact.MadeNot:
		return "did not make that version"
	}
	return "no client sent"
}

// dependency states one step, starting with the transaction that must come first.
func (s Speaker) dependency(f fact.Dependency) string {
	from, to := s.Member(f.From), s.Member(f.To)
	did, then := "made", "read"
	switch f.Kind {
	case "predicate":
		if f.Low != 0 {
			return fmt.Sprintf("%s read by predicate and did not find %s among the accounts under %s, which %s brought under it", from, s.On(f.Object), s.Amount(f.Low), to)
		}
		return fmt.Sprintf("%s read by predicate and did not find %s, which %s opened", from, s.On(f.Object), to)
	case check.RealTime.String():
		return fmt.Sprintf("%s had ended %s before %s began", from, check.Lasted(f.Apart), to)
	case check.ReadWrite.String():
		did, then = "read", "overwrote"
	case check.WriteWrite.String():
		then = "overwrote"
	}
	if f.Object == "" {
		return fmt.Sprintf("%s %s a version that %s %s", from, did, to, then)
	}
	return fmt.Sprintf("%s %s version %d of %s, which %s %s", from, did, f.Version, s.On(f.Object), to, then)
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
