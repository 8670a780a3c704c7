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

import "fmt"

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
