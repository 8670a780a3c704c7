package schedule

import (
	"fmt"
	"slices"
)

// Row is a row of the table: an id and an amount.
type Row struct{ ID, Amount int64 }

func (r Row) String() string { return fmt.Sprintf("%d=%d", r.ID, r.Amount) }

// initial returns the rows that a schedule begins with unless it names others.
func initial() []Row { return []Row{{1, 10}, {2, 20}} }

// lastID is the greatest id that a schedule uses; the least is 1.
const lastID = 4

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

func (t tx) add(id, amount int64) Step {
	return t.do(Operation{Kind: Add, IDs: []int64{id}, Amount: amount})
}
func (t tx) delete(id int64) Step      { return t.do(Operation{Kind: Delete, IDs: []int64{id}}) }
func (t tx) find(low, high int64) Step { return t.do(Operation{Kind: Find, Low: low, High: high}) }
func (t tx) addAll(amount int64) Step  { return t.do(Operation{Kind: AddAll, Amount: amount}) }
func (t tx) addWhere(low, high, amount int64) Step {
	return t.do(Operation{Kind: AddWhere, Low: low, High: high, Amount: amount})
}

func (t tx) deleteWhere(amount int64) Step {
	return t.do(Operation{Kind: DeleteWhere, Low: amount, High: amount + 1})
}
func (t tx) commit() Step   { return t.do(Operation{Kind: Commit}) }
func (t tx) rollback() Step { return t.do(Operation{Kind: Rollback}) }

// Schedule is one way in which an anomaly shows.
type Schedule struct {
	Anomaly Anomaly
	Variant string // what is special about it: what is read, and how it is found
	// Predicate says that an anti-dependency of the cycle is by a predicate. PL-2.99 protects
	// the rows that were read and nothing else, so it allows such a cycle.
	Predicate bool
	// Every says that each level forbids this form, because no history has it: a transaction
	// reads its own last write (Adya, Liskov and O'Neil, Generalized Isolation Level
	// Definitions, ICDE 2000, section 4.2).
	Every  bool
	Index  bool  // the table has an index by amount if the data model has indexes
	Leaves bool  // the rows that are left decide whether the anomaly was there
	Own    bool  // a transaction reads what it wrote itself
	Rounds int   // how often the schedule is run if one run shows little; 0: once
	Start  []Row // the rows that it begins with; nil: initial
	Steps  []Step

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
