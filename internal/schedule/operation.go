package schedule

import (
	"fmt"
	"strings"
)

// Kind is what an operation does.
type Kind uint8

// The kinds. A predicate selects the rows with Low ≤ amount < High.
const (
	Read        Kind = iota + 1 // reads rows by their ids; an absent row is no error
	Write                       // sets the amount of one row
	Add                         // adds to the amount of one row
	Insert                      // adds a row
	Delete                      // deletes one row
	Find                        // reads rows by a predicate
	FindUpdate                  // reads rows by a predicate and locks them: SELECT … FOR UPDATE
	FindShare                   // the same with a shared lock: SELECT … FOR SHARE
	AddAll                      // adds to the amount of all rows
	AddWhere                    // adds to the amount of rows by a predicate
	DeleteWhere                 // deletes rows by a predicate
	Commit
	Rollback
)

// verbs name the kinds in a sentence about how an anomaly was prevented.
var verbs = [...]string{
	Read: "read", Write: "write", Add: "update", Insert: "insert", Delete: "delete", Find: "read",
	FindUpdate: "locking read", FindShare: "locking read", AddAll: "update", AddWhere: "update", DeleteWhere: "delete",
	Commit: "commit", Rollback: "roll-back",
}

func (k Kind) writes() bool {
	switch k {
	case Write, Add, Insert, Delete, AddAll, AddWhere, DeleteWhere:
		return true
	}
	return false
}

// locks reports whether the kind is a read that locks what it finds.
func (k Kind) locks() bool { return k == FindUpdate || k == FindShare }

// reads reports whether the kind brings rows.
func (k Kind) reads() bool { return k == Read || k == Find || k.locks() }

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

// Result is what an operation brought.
type Result struct {
	Rows []Row // of a read, ascending by id
	// Affected is how many rows a write changed or deleted, if Counted.
	Affected int64
	Counted  bool
}

// affected returns the result of a write of n rows.
func affected(n int) Result { return Result{Affected: int64(n), Counted: true} }
