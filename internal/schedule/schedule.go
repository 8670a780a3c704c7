package schedule

import (
	"fmt"
	"strings"
)

// Row is a row of the table: an id and an amount.
type Row struct{ ID, Amount int64 }

func (r Row) String() string { return fmt.Sprintf("%d=%d", r.ID, r.Amount) }

// initial are the rows that every schedule begins with.
func initial() []Row { return []Row{{1, 10}, {2, 20}} }

// lastID is the greatest id that a schedule uses; the least is 1.
const lastID = 4

// Kind is what an operation does.
type Kind uint8

// The kinds. Those of a predicate take rows with Low ≤ amount < High.
const (
	Read        Kind = iota + 1 // rows by their ids, absent ones included
	Write                       // sets the amount of one row
	Insert                      // adds a row
	Find                        // rows by a predicate
	AddAll                      // adds to the amount of all rows
	DeleteWhere                 // deletes rows by a predicate
	Commit
	Rollback
)

// Operation is one operation of a transaction.
type Operation struct {
	Kind      Kind
	IDs       []int64 // of Read, Write and Insert
	Amount    int64   // of Write, Insert and AddAll
	Low, High int64   // of Find and DeleteWhere
}

func (o Operation) String() string {
	switch o.Kind {
	case Read:
		return "read row " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(o.IDs)), " and "), "[]")
	case Write:
		return fmt.Sprintf("write %d=%d", o.IDs[0], o.Amount)
	case Insert:
		return fmt.Sprintf("insert %d=%d", o.IDs[0], o.Amount)
	case Find:
		return "find rows with " + o.predicate()
	case AddAll:
		return fmt.Sprintf("add %d to all rows", o.Amount)
	case DeleteWhere:
		return "delete rows with " + o.predicate()
	case Commit:
		return "commit"
	}
	return "roll back"
}

func (o Operation) predicate() string {
	if o.High == o.Low+1 {
		return fmt.Sprintf("amount = %d", o.Low)
	}
	return fmt.Sprintf("%d <= amount < %d", o.Low, o.High)
}

func (k Kind) writes() bool { return k == Write || k == Insert || k == AddAll || k == DeleteWhere }

// Step is one operation of one transaction.
type Step struct {
	Transaction int // from 1
	Operation
	label string // by which the schedule asks for what it brought
}

// as gives the step a label.
func (s Step) as(label string) Step {
	s.label = label
	return s
}

// tx makes the steps of the transaction of this number.
type tx int

func (t tx) do(o Operation) Step { return Step{Transaction: int(t), Operation: o} }

func (t tx) read(ids ...int64) Step { return t.do(Operation{Kind: Read, IDs: ids}) }
func (t tx) write(id, amount int64) Step {
	return t.do(Operation{Kind: Write, IDs: []int64{id}, Amount: amount})
}

func (t tx) insert(id, amount int64) Step {
	return t.do(Operation{Kind: Insert, IDs: []int64{id}, Amount: amount})
}
func (t tx) find(low, high int64) Step { return t.do(Operation{Kind: Find, Low: low, High: high}) }
func (t tx) addAll(amount int64) Step  { return t.do(Operation{Kind: AddAll, Amount: amount}) }
func (t tx) deleteWhere(amount int64) Step {
	return t.do(Operation{Kind: DeleteWhere, Low: amount, High: amount + 1})
}
func (t tx) commit() Step   { return t.do(Operation{Kind: Commit}) }
func (t tx) rollback() Step { return t.do(Operation{Kind: Rollback}) }

// Schedule is one way in which an anomaly shows.
type Schedule struct {
	Anomaly Anomaly
	Variant string // what is special about it: what is read, and how it is found
	// Predicate says that the anomaly is one of predicates, which levels that protect
	// what was read, and nothing else, do not forbid.
	Predicate bool
	Index     bool // there is an index by amount, where the data model has such a thing
	Leaves    bool // what it left says whether the anomaly was there
	Rounds    int  // how often it is run, where once shows little; 0: once
	Steps     []Step

	// seen says what was seen of the anomaly; empty: nothing.
	seen func(o *observed) string
}

// transactions is how many there are.
func (s *Schedule) transactions() (n int) {
	for _, step := range s.Steps {
		n = max(n, step.Transaction)
	}
	return n
}

// readOnly reports whether a transaction writes nothing.
func (s *Schedule) readOnly(transaction int) bool {
	for _, step := range s.Steps {
		if step.Transaction == transaction && step.Kind.writes() {
			return false
		}
	}
	return true
}
