// Package schedule runs isolation anomalies step by step. A schedule is a few transactions whose
// operations come in one fixed order. It shows its anomaly at once if the database does not prevent
// it. A schedule is written once; a table in each data model carries out its operations.
//
// Most schedules go back to Hermitage (Kleppmann, https://github.com/ept/hermitage), whose users
// type them by hand.
package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Row is a row of the table: an id and an amount.
type Row struct{ ID, Amount int64 }

func (r Row) String() string { return fmt.Sprintf("%d=%d", r.ID, r.Amount) }

// initial returns the rows that a schedule begins with unless it names others.
func initial() []Row { return []Row{{1, 10}, {2, 20}} }

// lastID is the greatest id of a row; the least is 1.
const lastID = 4

// Step is one operation of one transaction.
type Step struct {
	Transaction int // from 1
	Operation
	label string // names the step in conditions
}

// notation matches one step in the notation of the literature (Berenson and others, SIGMOD 1995), with amounts:
//
//	r1(1,2)      T1 reads rows 1 and 2 by their ids
//	r1(30..60)   T1 reads the rows with 30 ≤ amount < 60; l1 and s1 lock them, exclusively or shared
//	w1(1=11)     T1 sets row 1 to 11; i1(3=30) inserts row 3
//	u1(2+10)     T1 adds 10 to row 2, u1(25..26+10) to rows by a predicate, and u1(*+10) to all rows
//	d1(1)        T1 deletes row 1, and d1(20..21) rows by a predicate
//	c1, a1       T1 commits, and rolls back
//
// A colon and a label may follow.
var notation = regexp.MustCompile(`^([a-z])(\d)(?:\((?:([\d,]+)|(\d+)\.\.(\d+)|\*)(?:[=+](\d+))?\))?(?::(\S+))?$`)

// letters has the kinds of a letter: on rows by their ids, by a predicate, and on nothing else or on all rows.
var letters = map[string]struct{ rows, predicate, rest Kind }{
	"r": {rows: Read, predicate: Find}, "l": {predicate: FindUpdate}, "s": {predicate: FindShare},
	"w": {rows: Write}, "i": {rows: Insert}, "u": {Add, AddWhere, AddAll}, "d": {rows: Delete, predicate: DeleteWhere},
	"c": {rest: Commit}, "a": {rest: Rollback},
}

// script returns the steps of a text with spaces between the steps.
func script(text string) (steps []Step) {
	number := func(digits string) int64 {
		n, _ := strconv.ParseInt(digits, 10, 64) // 0 for nothing
		return n
	}
	for word := range strings.FieldsSeq(text) {
		m := notation.FindStringSubmatch(word)
		kinds := letters[m[1]]
		o := Operation{Kind: kinds.rest, Low: number(m[4]), High: number(m[5]), Amount: number(m[6])}
		if m[3] != "" {
			o.Kind = kinds.rows
			for id := range strings.SplitSeq(m[3], ",") {
				o.IDs = append(o.IDs, number(id))
			}
		} else if m[5] != "" {
			o.Kind = kinds.predicate
		}
		steps = append(steps, Step{Transaction: int(number(m[2])), Operation: o, label: m[7]})
	}
	return steps
}

// Schedule is one way in which an anomaly shows.
type Schedule struct {
	Anomaly Anomaly
	Variant string // its difference: the rows that are read, and how they are found
	// Predicate is set if an anti-dependency of the cycle is by a predicate. PL-2.99 protects only
	// the rows that were read, so it allows such a cycle.
	Predicate bool
	// Every is set if each level forbids this form, because no history has it: a transaction
	// reads its own last write (Adya, Liskov and O'Neil, Generalized Isolation Level
	// Definitions, ICDE 2000, section 4.2).
	Every  bool
	Index  bool  // the table has an index by amount if the data model has indexes
	Leaves bool  // the rows that are left decide whether the anomaly was there
	Own    bool  // a transaction reads what it wrote itself
	Rounds int   // how often the schedule is run if one run shows little; 0: once
	Start  []Row // the rows that it begins with; nil: initial
	Steps  []Step

	// seen returns a sentence about the anomaly that was seen; empty if none was.
	seen func(o *observed) string
}

// transactions returns the number of transactions.
func (s *Schedule) transactions() (n int) {
	for _, step := range s.Steps {
		n = max(n, step.Transaction)
	}
	return n
}

// start returns the rows that the schedule begins with.
func (s *Schedule) start() []Row {
	if s.Start != nil {
		return s.Start
	}
	return initial()
}

// readOnly reports whether a transaction writes and locks nothing.
func (s *Schedule) readOnly(transaction int) bool {
	for _, step := range s.Steps {
		if step.Transaction == transaction && (step.Kind.writes() || step.Kind.locks()) {
			return false
		}
	}
	return true
}

// locking reports whether a read of the schedule locks what it finds.
func (s *Schedule) locking() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Kind.locks() })
}

// Kind is a kind of operation.
type Kind uint8

// The kinds: first those that bring rows, then those that write. A predicate selects the rows with Low ≤ amount < High.
const (
	Read        Kind = iota + 1 // reads rows by their ids; an absent row is no error
	Find                        // reads rows by a predicate
	FindUpdate                  // reads rows by a predicate and locks them: SELECT … FOR UPDATE
	FindShare                   // the same with a shared lock: SELECT … FOR SHARE
	Write                       // sets the amount of one row
	Add                         // adds to the amount of one row
	Insert                      // adds a row
	Delete                      // deletes one row
	AddAll                      // adds to the amount of all rows
	AddWhere                    // adds to the amount of rows by a predicate
	DeleteWhere                 // deletes rows by a predicate
	Commit
	Rollback
)

// verbs names the kinds in a sentence about the prevention of an anomaly.
var verbs = [...]string{
	Read: "read", Find: "read", FindUpdate: "locking read", FindShare: "locking read",
	Write: "write", Add: "update", Insert: "insert", Delete: "delete", AddAll: "update", AddWhere: "update", DeleteWhere: "delete",
	Commit: "commit", Rollback: "roll-back",
}

func (k Kind) writes() bool { return k >= Write && k <= DeleteWhere }

// locks reports whether the kind is a read that locks what it finds.
func (k Kind) locks() bool { return k == FindUpdate || k == FindShare }

// reads reports whether the kind brings rows.
func (k Kind) reads() bool { return k >= Read && k <= FindShare }

// Operation is one operation of a transaction.
type Operation struct {
	Kind      Kind
	IDs       []int64 // of Read, Write, Add, Insert and Delete
	Amount    int64   // of Write, Insert and what adds
	Low, High int64   // of a predicate
}

func (o Operation) String() string {
	switch o.Kind {
	case Read:
		return "read row " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(o.IDs)), " and "), "[]")
	case Write:
		return fmt.Sprintf("write %d=%d", o.IDs[0], o.Amount)
	case Add:
		return fmt.Sprintf("add %d to row %d", o.Amount, o.IDs[0])
	case Insert:
		return fmt.Sprintf("insert %d=%d", o.IDs[0], o.Amount)
	case Delete:
		return fmt.Sprintf("delete row %d", o.IDs[0])
	case Find, FindUpdate, FindShare:
		how := map[Kind]string{FindUpdate: "for update ", FindShare: "for share "}[o.Kind]
		return "find " + how + "rows with " + o.predicate()
	case AddAll:
		return fmt.Sprintf("add %d to all rows", o.Amount)
	case AddWhere:
		return fmt.Sprintf("add %d to rows with %s", o.Amount, o.predicate())
	case DeleteWhere:
		return "delete rows with " + o.predicate()
	case Commit:
		return "commit"
	}
	return "roll back"
}

func (o Operation) predicate() string {
	if o.equal() {
		return fmt.Sprintf("amount = %d", o.Low)
	}
	return fmt.Sprintf("%d <= amount < %d", o.Low, o.High)
}

// equal reports whether the predicate selects one amount.
func (o Operation) equal() bool { return o.High == o.Low+1 }

// among returns the rows that the predicate selects.
func (o Operation) among(rows []Row) (found []Row) {
	for _, r := range rows {
		if o.Low <= r.Amount && r.Amount < o.High {
			found = append(found, r)
		}
	}
	return found
}

// Result is the result of an operation.
type Result struct {
	Rows []Row // of a read, ascending by id
	// Affected is how many rows a write changed or deleted, if Counted.
	Affected int64
	Counted  bool
}

// affected returns the result of a write of n rows.
func affected(n int) Result { return Result{Affected: int64(n), Counted: true} }

// Anomaly is a phenomenon that defines isolation levels.
type Anomaly uint8

// The anomalies, in the order in which stronger and stronger levels forbid them.
//
// The definitions are from Adya (Weak Consistency, MIT 1999, chapters 3 and 4), with these
// exceptions. OTV and PMP are from Bailis and others (Highly Available Transactions, VLDB 2013,
// extended version, appendix A). P4 is from Berenson and others (A Critique of ANSI SQL
// Isolation Levels, SIGMOD 1995). The long fork is from Sovran and others (Transactional Storage
// for Geo-Replicated Systems, SOSP 2011). Internal consistency is the
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
