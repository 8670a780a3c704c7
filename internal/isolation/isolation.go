// Package isolation names the isolation levels that a database may claim and a
// check may hold it to. A level forbids everything that a weaker one forbids.
//
// The definitions are Adya's (Weak Consistency, MIT 1999) with snapshot
// isolation as in Adya's chapter 4 and strict serializability as in Herlihy and
// Wing's linearizability over whole transactions.
package isolation

import "fmt"

// Level is an isolation level; the zero value is unknown and satisfies nothing.
type Level uint8

// The levels, weakest first; comparing them with < is meant.
const (
	Unknown            Level = iota
	ReadUncommitted          // PL-1: no dirty write (G0)
	ReadCommitted            // PL-2: and no aborted, intermediate or circular read (G1)
	SnapshotIsolation        // PL-SI: and no lost update, read skew or long fork
	Serializable             // PL-3: and no write skew: no cycle at all (G2)
	StrictSerializable       // PL-SS: and the order agrees with real time
)

var names = [...]string{"unknown", "read-uncommitted", "read-committed", "snapshot-isolation", "serializable", "strict-serializable"}

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
