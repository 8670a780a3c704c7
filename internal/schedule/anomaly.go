// Package schedule holds what isolation anomalies look like step by step, and runs it:
// a schedule is a few transactions whose operations come in one fixed order, so that
// the anomaly is there at once if the database does not prevent it. A schedule is
// written once; a table in each data model carries its operations out.
//
// Most schedules go back to Hermitage (Kleppmann, https://github.com/ept/hermitage),
// which has them for people to type.
package schedule

import "slices"

// Anomaly is a phenomenon that isolation levels are defined by.
type Anomaly uint8

// The anomalies, in the order in which stronger and stronger levels forbid them.
//
// The definitions are those of Adya (Weak Consistency, MIT 1999, chapters 3 and 4); OTV
// and PMP are those of Bailis and others (Highly Available Transactions, VLDB 2013,
// extended version, appendix A), P4 that of Berenson and others (A Critique of ANSI SQL
// Isolation Levels, SIGMOD 1995), the long fork that of Sovran and others
// (Transactional Storage for Geo-Replicated Systems, SOSP 2011). Internal consistency is the
// axiom Int of Cerone, Bernardi and Gotsman (A Framework for Transactional Consistency Models
// with Atomic Visibility, CONCUR 2015).
const (
	G0        Anomaly = iota + 1 // dirty write: the writes of two transactions are mixed
	G1a                          // aborted read
	G1b                          // intermediate read
	G1c                          // circular information flow: each has read what the other wrote
	OTV                          // observed transaction vanishes
	Internal                     // a read disagrees with an earlier read or write of its own transaction
	PMP                          // predicate-many-preceders: a predicate is not read at one point
	P4                           // lost update
	GSingle                      // read skew: a cycle with one anti-dependency
	LongFork                     // two see two writes in opposite orders: G-nonadjacent
	G2Item                       // write skew: a cycle of anti-dependencies on rows
	G2                           // the same on what a predicate finds
	StaleRead                    // what was committed before the transaction began is not seen
)

type anomalyText struct{ short, long string }

var anomalyTexts = [...]anomalyText{
	0:         {"unknown anomaly", "unknown anomaly"},
	G0:        {"G0", "dirty write"},
	G1a:       {"G1a", "aborted read"},
	G1b:       {"G1b", "intermediate read"},
	G1c:       {"G1c", "circular information flow"},
	OTV:       {"OTV", "observed transaction vanishes"},
	Internal:  {"internal", "internal inconsistency: a read disagrees with an earlier read or write of its own transaction"},
	PMP:       {"PMP", "predicate-many-preceders"},
	P4:        {"P4", "lost update"},
	GSingle:   {"G-single", "read skew"},
	LongFork:  {"long fork", "two readers see two writes in opposite orders"},
	G2Item:    {"G2-item", "write skew"},
	G2:        {"G2", "write skew on a predicate"},
	StaleRead: {"stale read", "a committed write is not seen by a later transaction"},
}

// text returns the texts of an anomaly.
func (a Anomaly) text() anomalyText {
	if int(a) >= len(anomalyTexts) {
		a = 0
	}
	return anomalyTexts[a]
}

// Anomalies returns all anomalies, in order.
func Anomalies() (list []Anomaly) {
	for a := G0; a <= StaleRead; a++ {
		list = append(list, a)
	}
	return list
}

// String returns the name in the literature, such as G0, P4 or G-single.
func (a Anomaly) String() string { return a.text().short }

// Text returns the anomaly in words.
func (a Anomaly) Text() string { return a.text().long }

// Parse finds an anomaly by its short name.
func Parse(name string) (Anomaly, bool) {
	i := slices.IndexFunc(anomalyTexts[:], func(t anomalyText) bool { return t.short == name })
	return Anomaly(max(i, 0)), i > 0
}
