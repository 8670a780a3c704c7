// Package isolation names the isolation levels that a database may claim and a
// check may hold it to. A level forbids everything that a weaker one forbids.
//
// Vendors use four of the names for levels of their own: the REPEATABLE READ of a database
// need not be the level RepeatableRead here. Literature returns one name of the literature for
// each level, and sentences use it.
//
// The definitions are Adya's (Weak Consistency, MIT 1999), and snapshot isolation is from chapter 4. Strict
// serializability is Herlihy and Wing's linearizability over whole transactions. Monotonic atomic view is
// Bailis's (Highly Available Transactions, VLDB 2014). Read atomic and causal consistency are Cerone's (A
// Framework for Transactional Consistency Models with Atomic Visibility, CONCUR 2015). The strong session
// and strong forms are Daudjee and Salem's (Lazy Database Replication with Ordering Guarantees, ICDE 2004).
package isolation

import (
	"fmt"
	"strings"
)

// Level is an isolation level. The zero value is unknown and satisfies nothing.
type Level uint8

// These are the levels, each after all weaker ones. Levels are only partially ordered; use Includes to
// compare them. Among ReadUncommitted, ReadCommitted, SnapshotIsolation, Serializable and StrictSerializable,
// each includes the ones before it, so these may be compared with <.
const (
	Unknown Level = iota
	ReadUncommitted
	ReadCommitted
	MonotonicAtomicView
	ReadAtomic
	RepeatableRead
	SnapshotIsolation
	Serializable
	Causal
	StrongSessionReadUncommitted
	StrongSessionReadCommitted
	StrongSessionSnapshotIsolation
	StrongSessionSerializable
	StrongReadUncommitted
	StrongReadCommitted
	StrongSnapshotIsolation
	StrictSerializable
	levels
)

// Includes reports whether l forbids everything that m forbids. Every level includes itself. Unknown includes
// only itself, and only Unknown includes it.
func (l Level) Includes(m Level) bool {
	if l == m {
		return true
	}
	if l >= levels {
		return false
	}
	for _, w := range definitions[l].weaker {
		if w.Includes(m) {
			return true
		}
	}
	return false
}

// Levels returns all levels, each after the levels that it includes.
func Levels() []Level {
	var list []Level
	for l := ReadUncommitted; l < levels; l++ {
		list = append(list, l)
	}
	return list
}

// Strongest returns the levels of the list that no other level of the list includes.
func Strongest(list []Level) []Level {
	var most []Level
next:
	for _, l := range list {
		for _, other := range list {
			if other != l && other.Includes(l) {
				continue next
			}
		}
		most = append(most, l)
	}
	return most
}

// String returns the name for --expect.
func (l Level) String() string { return l.definition().name }

// Parse parses a name for --expect. "unknown" is an error.
func Parse(name string) (Level, error) {
	var names []string
	for _, l := range Levels() {
		if l.String() == name {
			return l, nil
		}
		names = append(names, l.String())
	}
	return Unknown, fmt.Errorf("unknown isolation level %q: use one of %v", name, names)
}

// MarshalText returns the name of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses the result of MarshalText, including "unknown".
func (l *Level) UnmarshalText(text []byte) (err error) {
	if string(text) == Unknown.String() {
		*l = Unknown
		return nil
	}
	*l, err = Parse(string(text))
	return err
}

// definition describes a level according to the literature.
type definition struct {
	name    string // as --expect takes it
	short   string // in the literature
	meaning string // the level in words, if short is a number; empty otherwise
	forbids string // beyond what the weaker levels forbid
	source  string
	weaker  []Level // the levels that this one is directly above
}

const (
	adya    = "Adya 1999"
	cerone  = "Cerone, Bernardi and Gotsman 2015"
	bailis  = "Bailis and others 2014"
	daudjee = "Daudjee and Salem 2004"
	herlihy = "Herlihy and Wing 1990"
)

// definitions has one entry for each level.
var definitions = [levels]definition{
	Unknown: {name: "unknown", short: "no known level"},
	ReadUncommitted: {"read-uncommitted", "PL-1", "the literature's read uncommitted",
		"dirty writes (G0), and that a transaction misses its own last write", adya, nil},
	ReadCommitted: {"read-committed", "PL-2", "the literature's read committed",
		"aborted, intermediate and circular reads (G1)", adya, []Level{ReadUncommitted}},
	MonotonicAtomicView: {"monotonic-atomic-view", "monotonic atomic view", "",
		"that a transaction which has seen another misses its writes in later reads (OTV)", bailis, []Level{ReadCommitted}},
	ReadAtomic: {"read-atomic", "read atomic", "",
		"fractured reads, and a read that disagrees with an earlier operation of its transaction (internal)",
		cerone, []Level{MonotonicAtomicView}},
	RepeatableRead: {"repeatable-read", "PL-2.99", "the literature's repeatable read",
		"every cycle whose anti-dependencies are on rows (G2-item)", adya, []Level{MonotonicAtomicView}},
	SnapshotIsolation: {"snapshot-isolation", "snapshot isolation", "",
		"lost updates (P4), read skew (G-single) and the long fork", adya, []Level{ReadAtomic}},
	Serializable: {"serializable", "PL-3", "the literature's serializability",
		"every cycle (G2)", adya, []Level{RepeatableRead, SnapshotIsolation}},
	Causal: {"causal", "causal consistency", "",
		"that a transaction sees another without what that one depends on", cerone, []Level{ReadAtomic}},
	StrongSessionReadUncommitted: {"strong-session-read-uncommitted", "strong session PL-1", "",
		"dirty writes against the order of one client", daudjee, []Level{ReadUncommitted}},
	StrongSessionReadCommitted: {"strong-session-read-committed", "strong session PL-2", "",
		"circular reads against the order of one client", daudjee, []Level{ReadCommitted, StrongSessionReadUncommitted}},
	StrongSessionSnapshotIsolation: {"strong-session-snapshot-isolation", "strong session snapshot isolation", "",
		"a snapshot without what its client did before", daudjee, []Level{SnapshotIsolation, Causal, StrongSessionReadCommitted}},
	StrongSessionSerializable: {"strong-session-serializable", "strong session PL-3", "",
		"every cycle with the order of each client", daudjee, []Level{Serializable, StrongSessionSnapshotIsolation}},
	StrongReadUncommitted: {"strong-read-uncommitted", "strong PL-1", "",
		"dirty writes against real time", daudjee, []Level{StrongSessionReadUncommitted}},
	StrongReadCommitted: {"strong-read-committed", "strong PL-2", "",
		"circular reads against real time", daudjee, []Level{StrongSessionReadCommitted, StrongReadUncommitted}},
	StrongSnapshotIsolation: {"strong-snapshot-isolation", "strong snapshot isolation", "",
		"a snapshot without what had ended before it began", daudjee, []Level{StrongSessionSnapshotIsolation, StrongReadCommitted}},
	StrictSerializable: {"strict-serializable", "strict serializability", "",
		"every cycle with real-time order", herlihy, []Level{StrongSessionSerializable, StrongSnapshotIsolation}},
}

func (l Level) definition() definition {
	if l < levels {
		return definitions[l]
	}
	number := fmt.Sprintf("level %d", uint8(l))
	return definition{name: number, short: number}
}

// Short returns the name of the level in the literature, such as PL-2.99.
func (l Level) Short() string { return l.definition().short }

// Literature returns the name of the level in the literature, in a form that differs from vendors' names:
// PL-2.99 (the literature's repeatable read).
func (l Level) Literature() string {
	d := l.definition()
	if d.meaning == "" {
		return d.short
	}
	return d.short + " (" + d.meaning + ")"
}

// Forbids describes what the level forbids beyond the weaker ones.
func (l Level) Forbids() string { return l.definition().forbids }

// Source names who defined the level.
func (l Level) Source() string { return l.definition().source }

// ForbiddenBy describes the levels that forbid something, given the weakest ones: "forbidden by PL-2.99 (the
// literature's repeatable read) and stronger". Unknown levels are ignored. Without known levels, the text is
// empty.
func ForbiddenBy(weakest ...Level) string {
	var names []string
	stronger := false
	for _, l := range weakest {
		if l == Unknown || l >= levels {
			continue
		}
		names = append(names, l.Literature())
		stronger = stronger || l != StrictSerializable
	}
	if len(names) == 0 {
		return ""
	}
	text := "forbidden by " + strings.Join(names, " and ")
	if stronger {
		text += " and stronger"
	}
	return text
}
