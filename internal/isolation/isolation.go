// Package isolation names the isolation levels that a database may claim and a
// check may hold it to. A level forbids everything that a weaker one forbids.
//
// Vendors use four of the names for levels of their own: the REPEATABLE READ of a database
// need not be the level RepeatableRead here. Definitions has one name of the literature for
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
func (l Level) String() string {
	if l < levels {
		return definitions[l].name
	}
	return fmt.Sprintf("level %d", uint8(l))
}

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
	adya     = "Adya 1999"
	cerone   = "Cerone, Bernardi and Gotsman 2015"
	bailis   = "Bailis and others 2014"
	daudjee  = "Daudjee and Salem 2004"
	repeated = "the literature's "
)

// definitions has one entry for each level.
var definitions = [levels]definition{
	Unknown: {name: "unknown", short: "no known level"},
	ReadUncommitted: {
		name: "read-uncommitted", short: "PL-1", meaning: repeated + "read uncommitted",
		forbids: "dirty writes (G0), and that a transaction misses its own last write", source: adya,
	},
	ReadCommitted: {
		name: "read-committed", short: "PL-2", meaning: repeated + "read committed",
		forbids: "aborted, intermediate and circular reads (G1)", source: adya, weaker: []Level{ReadUncommitted},
	},
	MonotonicAtomicView: {
		name: "monotonic-atomic-view", short: "monotonic atomic view",
		forbids: "that a transaction which has seen another misses its writes in later reads (OTV)", source: bailis,
		weaker: []Level{ReadCommitted},
	},
	ReadAtomic: {
		name: "read-atomic", short: "read atomic",
		forbids: "fractured reads, and a read that disagrees with an earlier operation of its transaction (internal)",
		source:  cerone, weaker: []Level{MonotonicAtomicView},
	},
	RepeatableRead: {
		name: "repeatable-read", short: "PL-2.99", meaning: repeated + "repeatable read",
		forbids: "every cycle whose anti-dependencies are on rows (G2-item)", source: adya,
		weaker: []Level{MonotonicAtomicView},
	},
	SnapshotIsolation: {
		name: "snapshot-isolation", short: "snapshot isolation",
		forbids: "lost updates (P4), read skew (G-single) and the long fork", source: adya, weaker: []Level{ReadAtomic},
	},
	Serializable: {
		name: "serializable", short: "PL-3", meaning: repeated + "serializability",
		forbids: "every cycle (G2)", source: adya, weaker: []Level{RepeatableRead, SnapshotIsolation},
	},
	Causal: {
		name: "causal", short: "causal consistency",
		forbids: "that a transaction sees another without what that one depends on", source: cerone,
		weaker: []Level{ReadAtomic},
	},
	StrongSessionReadUncommitted: {
		name: "strong-session-read-uncommitted", short: "strong session PL-1",
		forbids: "dirty writes against the order of one client", source: daudjee, weaker: []Level{ReadUncommitted},
	},
	StrongSessionReadCommitted: {
		name: "strong-session-read-committed", short: "strong session PL-2",
		forbids: "circular reads against the order of one client", source: daudjee,
		weaker: []Level{ReadCommitted, StrongSessionReadUncommitted},
	},
	StrongSessionSnapshotIsolation: {
		name: "strong-session-snapshot-isolation", short: "strong session snapshot isolation",
		forbids: "a snapshot without what its client did before", source: daudjee,
		weaker: []Level{SnapshotIsolation, Causal, StrongSessionReadCommitted},
	},
	StrongSessionSerializable: {
		name: "strong-session-serializable", short: "strong session PL-3",
		forbids: "every cycle with the order of each client", source: daudjee,
		weaker: []Level{Serializable, StrongSessionSnapshotIsolation},
	},
	StrongReadUncommitted: {
		name: "strong-read-uncommitted", short: "strong PL-1",
		forbids: "dirty writes against real time", source: daudjee, weaker: []Level{StrongSessionReadUncommitted},
	},
	StrongReadCommitted: {
		name: "strong-read-committed", short: "strong PL-2",
		forbids: "circular reads against real time", source: daudjee,
		weaker: []Level{StrongSessionReadCommitted, StrongReadUncommitted},
	},
	StrongSnapshotIsolation: {
		name: "strong-snapshot-isolation", short: "strong snapshot isolation",
		forbids: "a snapshot without what had ended before it began", source: daudjee,
		weaker: []Level{StrongSessionSnapshotIsolation, StrongReadCommitted},
	},
	StrictSerializable: {
		name: "strict-serializable", short: "strict serializability",
		forbids: "every cycle with real-time order", source: "Herlihy and Wing 1990",
		weaker: []Level{StrongSessionSerializable, StrongSnapshotIsolation},
	},
}

// Definition is one row of the table of levels.
type Definition struct {
	Level   Level
	Short   string // the name in the literature: PL-2.99
	Name    string // the same with its meaning in words: PL-2.99 (the literature's repeatable read)
	Forbids string // what this level forbids beyond the weaker ones
	Source  string // who defined it
}

// Definitions returns the table of all levels, each after the levels that it includes.
func Definitions() (list []Definition) {
	for _, l := range Levels() {
		d := definitions[l]
		list = append(list, Definition{l, d.short, l.Literature(), d.forbids, d.source})
	}
	return list
}

// Short returns the name of the level in the literature, such as PL-2.99.
func (l Level) Short() string {
	if l < levels {
		return definitions[l].short
	}
	return l.String()
}

// Literature returns the name of the level in the literature, in a form that differs from vendors' names:
// PL-2.99 (the literature's repeatable read).
func (l Level) Literature() string {
	if l >= levels || definitions[l].meaning == "" {
		return l.Short()
	}
	return definitions[l].short + " (" + definitions[l].meaning + ")"
}

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
