// Package isolation names the isolation levels that a database may claim and a
// check may hold it to. A level forbids everything that a weaker one forbids.
//
// The definitions are Adya's (Weak Consistency, MIT 1999) with snapshot
// isolation as in Adya's chapter 4 and strict serializability as in Herlihy and
// Wing's linearizability over whole transactions. Monotonic atomic view is Bailis's
// (Highly Available Transactions, VLDB 2014), read atomic and causal consistency are
// Cerone's (A Framework for Transactional Consistency Models with Atomic Visibility,
// CONCUR 2015). The strong session and strong forms are Daudjee and Salem's (Lazy
// Database Replication with Ordering Guarantees, ICDE 2004).
package isolation

import "fmt"

// Level is an isolation level; the zero value is unknown and satisfies nothing.
type Level uint8

// The levels. Each stands after all that are weaker. Only some are comparable: ask with
// Includes. Among ReadUncommitted, ReadCommitted, SnapshotIsolation, Serializable and
// StrictSerializable, each includes those before it, and comparing them with < is meant.
const (
	Unknown                        Level = iota
	ReadUncommitted                      // PL-1: no dirty write (G0)
	ReadCommitted                        // PL-2: and no aborted, intermediate or circular read (G1)
	MonotonicAtomicView                  // and who has seen a transaction does not miss its writes in later reads (OTV)
	ReadAtomic                           // and not in earlier reads either
	RepeatableRead                       // PL-2.99: no cycle but with an anti-dependency by a predicate (G2-item)
	SnapshotIsolation                    // PL-SI: no lost update, read skew or long fork
	Serializable                         // PL-3: and no write skew: no cycle at all (G2)
	Causal                               // who sees a transaction sees all that it depends on, the earlier ones of its client too
	StrongSessionReadUncommitted         // no dirty write against the order of one client
	StrongSessionReadCommitted           // no circular read against the order of one client
	StrongSessionSnapshotIsolation       // a snapshot has all that its client did before
	StrongSessionSerializable            // and the order of all agrees with that of each client
	StrongReadUncommitted                // no dirty write against real time
	StrongReadCommitted                  // no circular read against real time
	StrongSnapshotIsolation              // a snapshot has all that had ended before it began
	StrictSerializable                   // PL-SS: and the order of all agrees with real time
	levels
)

var names = [levels]string{
	"unknown", "read-uncommitted", "read-committed", "monotonic-atomic-view", "read-atomic", "repeatable-read", "snapshot-isolation", "serializable", "causal",
	"strong-session-read-uncommitted", "strong-session-read-committed", "strong-session-snapshot-isolation", "strong-session-serializable",
	"strong-read-uncommitted", "strong-read-committed", "strong-snapshot-isolation", "strict-serializable",
}

// weaker are the levels that each is directly above.
var weaker = [levels][]Level{
	ReadCommitted:                  {ReadUncommitted},
	MonotonicAtomicView:            {ReadCommitted},
	ReadAtomic:                     {MonotonicAtomicView},
	RepeatableRead:                 {MonotonicAtomicView},
	SnapshotIsolation:              {ReadAtomic},
	Serializable:                   {RepeatableRead, SnapshotIsolation},
	Causal:                         {ReadAtomic},
	StrongSessionReadUncommitted:   {ReadUncommitted},
	StrongSessionReadCommitted:     {ReadCommitted, StrongSessionReadUncommitted},
	StrongSessionSnapshotIsolation: {SnapshotIsolation, Causal, StrongSessionReadCommitted},
	StrongSessionSerializable:      {Serializable, StrongSessionSnapshotIsolation},
	StrongReadUncommitted:          {StrongSessionReadUncommitted},
	StrongReadCommitted:            {StrongSessionReadCommitted, StrongReadUncommitted},
	StrongSnapshotIsolation:        {StrongSessionSnapshotIsolation, StrongReadCommitted},
	StrictSerializable:             {StrongSessionSerializable, StrongSnapshotIsolation},
}

// Includes says that l forbids everything that m forbids. Every level includes itself, and
// Unknown includes and is included by nothing else.
func (l Level) Includes(m Level) bool {
	if l == m {
		return true
	}
	if l >= levels {
		return false
	}
	for _, w := range weaker[l] {
		if w.Includes(m) {
			return true
		}
	}
	return false
}

// Levels returns all levels, each after those that it includes.
func Levels() []Level {
	var list []Level
	for l := ReadUncommitted; l < levels; l++ {
		list = append(list, l)
	}
	return list
}

// Strongest returns the levels of the list that no other one of it includes.
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

// String returns the level as --expect takes it.
func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// Parse reads a level as --expect takes it; "unknown" is no level to expect.
func Parse(name string) (Level, error) {
	for i, n := range names {
		if n == name && i > 0 {
			return Level(i), nil
		}
	}
	return Unknown, fmt.Errorf("no isolation level is called %q: take one of %v", name, names[1:])
}

// MarshalText and UnmarshalText carry a level through JSON and YAML by name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote, "unknown" included.
func (l *Level) UnmarshalText(text []byte) (err error) {
	if string(text) == names[Unknown] {
		*l = Unknown
		return nil
	}
	*l, err = Parse(string(text))
	return err
}
