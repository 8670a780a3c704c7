package workload

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// Forget takes back what an earlier try has set.
func Forget(tx *history.Transaction) {
	tx.Outcome, tx.Reason = history.Unknown, 0
	for i := range tx.Ops {
		op := &tx.Ops[i]
		op.Observed, op.State, op.Version, op.Value, op.Writer = false, 0, 0, 0, 0
	}
}

// Observe notes what a transaction saw of an object.
func Observe(op *history.Op, value, version, writer int64) {
	op.Observed, op.Value, op.Version, op.Writer = true, value, uint64(version), history.ID(writer)
}

// Rules are the reasons of a workload that constraints of its schema stand for; 0 where
// it has none.
type Rules struct {
	CheckFailed history.Reason
	Missing     history.Reason // an object that is not there
	// Logged is set if the ledger's id is the only unique key that a transaction can violate. Then the transaction is
	// applied, or a look-up has closed its id.
	Logged bool
}

// Ended returns the result of a client's try that ended with err. A constraint of the schema that implements a rule
// of the workload rejects the transaction. Unless the transaction may have been applied, its observations are
// removed.
func Ended(tx *history.Transaction, err error, rules Rules) error {
	if err == nil {
		return nil
	}
	constraint := db.ConstraintOf(err)
	if constraint == db.UniqueKey && rules.Logged {
		err = load.ErrAlreadyApplied
	}
	if err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown {
		Forget(tx)
	}
	reason := history.Reason(0)
	switch constraint {
	case db.CheckFailed:
		reason = rules.CheckFailed
	case db.NotNull, db.ForeignKey:
		reason = rules.Missing
	}
	if reason == 0 {
		return err
	}
	Decide(tx, reason)
	return nil
}

// Decide ends a transaction: it is committed, or rejected for a reason.
func Decide(tx *history.Transaction, reason history.Reason) {
	tx.Outcome, tx.Reason = history.Committed, reason
	if reason != 0 {
		tx.Outcome = history.Rejected
	}
}

// ResolvedWithoutLookUp reports whether a transaction changes nothing, so that it counts as aborted in any case.
func ResolvedWithoutLookUp(tx *history.Transaction) bool {
	if tx.Kind.ReadOnly() {
		tx.Outcome = history.Aborted
	}
	return tx.Kind.ReadOnly()
}

// IDLength is the length of an id as text: sixteen hexadecimal digits.
const IDLength = 16

// PutID writes an id into dst, which has IDLength.
func PutID(dst []byte, id history.ID) { Hex.Put(dst[:IDLength], uint64(id)) }

// ParseID is the inverse of PutID; false if no transaction has the id.
func ParseID(text []byte) (history.ID, bool) {
	n, ok := Hex.Parse(text)
	return history.ID(n), ok && len(text) == IDLength && n != 0 && n < 1<<63
}

// A ledger keeps each transaction under its id, in records or rows with a unique key. A look-up
// of a transaction whose outcome is unknown writes a tombstone under its id.
//
// Merely to read would be wrong: the commit may still be under way and succeed a moment
// later. A tombstone and the transaction cannot both be there, so the answer stays true.
var (
	// ErrNeither is the error of a look-up that found nothing where it had written.
	ErrNeither = &db.Error{
		Class: db.Unknown, Op: "look up a transaction",
		Err: errors.New("the database has neither the transaction nor the tombstone that was written in its place just now"),
	}
)

// ResolveByRow looks up tx by its rows in the ledger. tombstone inserts one under an id,
// and find reads the rows of an id, whose last column is NULL in a tombstone.
func ResolveByRow(ctx context.Context, s db.SQLSession, tx *history.Transaction, tombstone, find *db.Statement) error {
	id := []db.Value{{Int: int64(tx.ID)}}
	r, err := TakeRow(ctx, s, tombstone, id, find, id)
	if err != nil {
		return err
	}
	tx.Outcome = history.Committed
	for i := range r.Rows() {
		if row := r.Row(i); row[len(row)-1].Null {
			tx.Outcome = history.Aborted
		}
	}
	return nil
}

// TakeRow inserts a tombstone with these values unless another row has its unique key,
// and returns what find reads then: who has the key. If the transaction that is looked up
// is still under way, the key makes one of the two wait for the other.
func TakeRow(
	ctx context.Context, s db.SQLSession, tombstone *db.Statement, values []db.Value, find *db.Statement, key []db.Value,
) (*db.Result, error) {
	_, err := inTransaction(ctx, s, false, tombstone, values)
	if err != nil && db.ConstraintOf(err) != db.UniqueKey { // of a dialect without DoNothing: it is there
		return nil, err
	}
	// A transaction of its own: under snapshot isolation the one above would not see
	// what committed while it waited.
	result, err := inTransaction(ctx, s, true, find, key)
	if err != nil {
		return nil, err
	}
	r := s.Result(result)
	if r == nil || r.Rows() == 0 {
		return nil, ErrNeither
	}
	return r, nil
}

// inTransaction runs a transaction of one statement.
func inTransaction(ctx context.Context, s db.SQLSession, readOnly bool, statement *db.Statement, args []db.Value) (result int, err error) {
	if err := s.Begin(ctx, readOnly); err != nil {
		return 0, err
	}
	if result, err = s.Do(ctx, statement, args); err != nil {
		return 0, err
	}
	return result, s.Commit(ctx)
}
