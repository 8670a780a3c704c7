package db

import "context"

// Records is the model of a database of records: collections of records, each of
// which has a unique id and named fields, and sessions with transactions over several of
// them.
type Records interface {
	Database
	// Exists reports whether a collection is there.
	Exists(ctx context.Context, c *Collection) (bool, error)

	// Create makes a collection with the constraints of its fields, unless it is there.
	Create(ctx context.Context, c *Collection) error

	// Drop removes a collection with all its records. It returns nil if the collection is not there.
	Drop(ctx context.Context, c *Collection) error

	// RecordSession opens a session: one client, used by one goroutine at a time.
	RecordSession(ctx context.Context, options SessionOptions) (RecordSession, error)
}

// Declarer is implemented by a database of records that must know the collections of a workload
// before any session. A later call replaces an earlier one.
type Declarer interface {
	Declare(collections ...*Collection) error
}

// Rehearser is implemented by a database of records that must prepare for transactions.
type Rehearser interface {
	// Rehearse carries out transactions on a session that sends nothing. It finds every
	// record, with large numbers and no texts.
	Rehearse(ctx context.Context, transactions func(s RecordSession) error) error
}

// Assumer is implemented by a session whose commit compares the records that the transaction has read.
type Assumer interface {
	// Assume makes a record count as read with these values. Commit is Aborted if it has others.
	Assume(c *Collection, values []Value)
}

// Collection describes records that are alike. It is made once and never changed.
type Collection struct {
	Name   string
	ID     Type    // of the unique id: Integer or Text, in whose order Scan goes
	Length int     // most bytes of an id that is a text; 0: a database takes 1,024
	Fields []Field // of every record
	// List is a field that is a list of records with these fields; empty: there is none.
	List  string
	Items []Field
	// Counter is set if the only field is a number that transactions also add to without
	// finding it (Update.Unseen).
	Counter bool
	// Fresh is set if each transaction changes another record before it inserts one, so that no two
	// transactions that commit insert one id. Then an optimistic database does not look for the id.
	Fresh bool
	// Group is the number of hexadecimal digits at the beginning of the id that are the id of a record of another
	// collection. A partitioned database keeps both records together; 0: it places each record by its own id.
	Group int
	// From is the collection whose record each item of the list names by its first field. The item's last field is a
	// copy of the field Copied of that record, as the transaction leaves it. A database may take the copy from the
	// record instead of the arguments. A second insert of the same id must name the same records, or have no list. Nil:
	// nothing is copied.
	From   *Collection
	Copied int
}

// Field is a field of a record. A Null value means that the field is missing.
type Field struct {
	Name        string
	Type        Type
	Additive    bool // a quantity that transactions add to, such as a balance
	NonNegative bool // a write that makes it negative is refused: class Constraint, CheckFailed
}

// ID is the place of the id among the values of a record.
const ID = 0

// Width returns the number of values before the list: the id and the fields.
func (c *Collection) Width() int { return 1 + len(c.Fields) }

// Record is the result of a look-up of one record.
type Record struct {
	Found bool
	// Values are the id, the fields, and then the fields of each record of the list.
	Values []Value
}

// Update is a change of records by their ids. Its numbers are places of fields among the
// values of a record. It is made once and never changed.
type Update struct {
	Collection *Collection
	AtLeast    int   // the field that must be at least the first argument; 0: none
	Add        []int // the next arguments are added to these fields
	Append     []int // the next arguments are put behind the texts of these fields, if Limits.Deferred is set
	Set        []int // the last arguments replace the values of these fields
	// Unseen lets Update add to a Counter without finding it, if Limits.Adds is set. A record that is not there then
	// counts as found and is made, unless Limits.Simple is set. FindAndUpdate reads the record, and then adds in the
	// same way.
	Unseen bool
}

// Arguments returns the number of arguments for one record.
func (u *Update) Arguments() int {
	n := len(u.Add) + len(u.Append) + len(u.Set)
	if u.AtLeast != 0 {
		n++
	}
	return n
}

// RecordSession is one client and at most one transaction. Its transactions have the
// isolation that the database claims for the session (Database.Claim), and no more. A
// transaction sees its own writes. Arguments are copied. Errors are *Error.
//
// After an error from any method the transaction is over. If the class is
// Unknown or Unavailable the session must be Reset before anything else.
type RecordSession interface {
	// Begin starts a transaction. A readOnly transaction writes nothing, and the database may rely on it.
	Begin(ctx context.Context, readOnly bool) error

	// Reserve announces, before the first Find of a transaction, that it will insert a record.
	// A database that must look for an id before it inserts looks with that Find.
	Reserve(c *Collection, id Value)

	// Find looks for records by their ids in one round trip. out has one entry for each
	// id. Its values are valid until the next Begin.
	Find(ctx context.Context, c *Collection, ids []Value, out []Record) error

	// Insert adds records, each with its values as Record has them, in one round trip.
	// An id that is there already is refused: class Constraint, UniqueKey.
	Insert(ctx context.Context, c *Collection, records ...[]Value) error

	// Update changes the records with these ids in one round trip. args are the arguments of each record, one record
	// after another. found is the number of records that were there and met the condition.
	Update(ctx context.Context, u *Update, ids, args []Value) (found int, err error)

	// FindAndUpdate changes one record and returns its values before the change, valid until the next Begin. No other
	// transaction changes the record until this transaction has ended. The result is not Found if the record is not
	// there or does not meet the condition.
	FindAndUpdate(ctx context.Context, u *Update, id Value, args []Value) (before Record, err error)

	// Commit ends the transaction. Only nil means that it is committed.
	Commit(ctx context.Context) error

	// Rollback gives up the open transaction; without one it does nothing.
	Rollback(ctx context.Context) error

	// Scan calls record for at most limit records, in the order of the ids, beginning with the id from. A Null from is
	// the first id, and limit 0 is all. The values are valid until record returns. In a transaction the records are
	// from its snapshot. Without a transaction they may be from several moments.
	Scan(ctx context.Context, c *Collection, from Value, limit int, record func(values []Value) error) error

	// Reset drops the connection and connects again, once: the caller backs off and calls
	// again.
	Reset(ctx context.Context) error

	Close() error
}

// RecordRanger is implemented by a database of records whose transactions read and remove ranges
// of records.
type RecordRanger interface {
	// RecordRangeSession opens a session as RecordSession does.
	RecordRangeSession(ctx context.Context, options SessionOptions) (RecordRangeSession, error)
}

// RecordRange is a condition on records: From ≤ id < To. If Field is not 0, this field must also be less than Below.
type RecordRange struct {
	From, To Value
	Field    int // its place among the values
	Below    Value
}

// RecordRangeSession is a RecordSession whose transactions read ranges.
type RecordRangeSession interface {
	RecordSession

	// Range calls record for each record of a range, in the order of the ids and from the
	// snapshot of the transaction. record must not keep the values, and must not call methods of
	// the session. An error of record ends the transaction and is returned.
	Range(ctx context.Context, c *Collection, r RecordRange, record func(values []Value) error) error

	// Delete removes the records with these ids in one round trip. found is the number of records that were there.
	Delete(ctx context.Context, c *Collection, ids []Value) (found int, err error)
}
