package check

import (
	"fmt"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// EdgeKind says why one transaction must come before another, by the names of Adya
// (Weak Consistency, MIT 1999, section 3.1) and of what clients can order. The zero value
// is unknown.
type EdgeKind uint8

const (
	_            EdgeKind = iota
	WriteWrite            // the second overwrote the version that the first made
	WriteRead             // the second read a version that the first made
	ReadWrite             // the second overwrote the version that the first read
	ProcessOrder          // one client had the answer of the first before it began the second
	RealTime              // the first had ended before the second began
)

var edgeNames = [...]string{"unknown", "ww", "wr", "rw", "process", "real time"}

func (k EdgeKind) String() string {
	if int(k) < len(edgeNames) {
		return edgeNames[k]
	}
	return fmt.Sprintf("undefined %d", k)
}

// MarshalText carries a kind through JSON by name.
func (k EdgeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Edge is one reason for which From comes before To.
type Edge struct {
	From, To history.ID
	Kind     EdgeKind
	Object   string // as people know it; empty of the order of clients and of real time

	// What From and To read or made of the object, such as "version 3" or "[1 2]"; empty
	// where it is not known.
	FromVersion, ToVersion string

	Why fact.Fact // the edge as a statement
}

// Span is a transaction as a drawing shows it: on its client's line, from its beginning to
// its end.
type Span struct {
	ID         history.ID
	Kind       string // as the workload names it
	Outcome    history.Outcome
	Begin, End int64       // ns since its run's start; End is 0 where nobody knows it
	Did        []fact.Fact // what it did and saw; of many operations those that the cycle is about
}
