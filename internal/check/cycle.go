package check

import (
	"fmt"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// EdgeKind is the reason why one transaction must precede another. The first three kinds are named after Adya
// (Weak Consistency, MIT 1999, section 3.1), the others after the order that clients observe. The zero value
// is unknown.
type EdgeKind uint8

const (
	_            EdgeKind = iota
	WriteWrite            // the second overwrote the version that the first made
	WriteRead             // the second read a version that the first made
	ReadWrite             // the second overwrote the version that the first read
	ProcessOrder          // one client received the reply to the first before it began the second
	RealTime              // the first had ended before the second began
)

var edgeNames = [...]string{"unknown", "ww", "wr", "rw", "process", "real time"}

func (k EdgeKind) String() string {
	if int(k) < len(edgeNames) {
		return edgeNames[k]
	}
	return fmt.Sprintf("undefined %d", k)
}

// MarshalText returns the name of the kind.
func (k EdgeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Edge is one reason for which From comes before To.
type Edge struct {
	From, To history.ID
	Kind     EdgeKind
	Object   string // display name; empty for the order of clients and of real time

	// FromVersion and ToVersion are the versions of the object that From and To read or made, such as
	// "version 3" or "[1 2]". They are empty if the versions are not known.
	FromVersion, ToVersion string

	Why fact.Fact // the edge as a statement
}

// Span describes one transaction for a drawing: its client, its beginning, its end and its operations.
type Span struct {
	ID         history.ID
	Kind       string // as the workload names it
	Outcome    history.Outcome
	Begin, End int64       // ns since its run's start; an End of 0 is unknown
	Did        []fact.Fact // its operations and results; of many operations, those that belong to the cycle
}
