package db

import "context"

// Documents is the model of a database of documents: collections of documents, each of
// which has a unique id and named fields, and sessions with transactions over several of
// them.
type Documents interface {
	Database
	// Collections are the names of those that are there.
	Collections(ctx context.Context) ([]string, error)

	// Create makes a collection with the constraints of its fields, unless it is there.
	Create(ctx context.Context, c *Collection) error

	// Drop removes a collection with all its documents. One that is not there is no error.
	Drop(ctx context.Context, c *Collection) error

	// DocumentSession opens a session: one client, used by one goroutine at a time.
	DocumentSession(ctx context.Context, options SessionOptions) (DocumentSession, error)
}

// Collection describes documents that are alike. It is made once and never changed.
type Collection struct {
	Name   string
	ID     Type    // of the unique id: Integer or Text, in whose order Scan goes
	Fields []Field // of every document
	// List is a field that is a list of documents with these fields; empty: there is none.
	List  string
	Items []Field
}

// Field is a field of a document. A value that is Null is one that is not there.
type Field struct {
	Name        string
	Type        Type
	NonNegative bool // a write that makes it negative is refused: class Constraint, CheckFailed
}

// ID is the place of the id among the values of a document.
const ID = 0

// Width is how many values a document has before those of its list: the id and the fields.
func (c *Collection) Width() int { return 1 + len(c.Fields) }

// Document is what was found of a document.
type Document struct {
	Found bool
	// Values are the id, the fields, and then the fields of each document of the list.
	Values []Value
}

// Update is a change of documents by their ids. Its numbers are places of fields among the
// values of a document. It is made once and never changed.
type Update struct {
	Collection *Collection
	AtLeast    int   // the field that must be at least the first argument; 0: none
	Add        []int // the next arguments are added to these fields
	Set        []int // the last ones take the place of what is in these
}

// Arguments is how many arguments the update of one document has.
func (u *Update) Arguments() int {
	n := len(u.Add) + len(u.Set)
	if u.AtLeast != 0 {
		n++
	}
	return n
}

// DocumentSession is one client and at most one transaction. What its transactions are
// kept from is what the database claims for the session's isolation (Database.Claim), and
// no more. A transaction sees its own writes. Arguments are copied. Its errors are *Error.
//
// After an error from any method the transaction is over. If the class is
// Unknown or Unavailable the session must be Reset before anything else.
type DocumentSession interface {
	// Begin starts a transaction. With readOnly it writes nothing and the
	// database may know it.
	Begin(ctx context.Context, readOnly bool) error

	// Find looks for documents by their ids in one round trip. out has as many entries as
	// there are ids; what is in it is valid until the next Begin.
	Find(ctx context.Context, c *Collection, ids []Value, out []Document) error

	// Insert adds documents, each with its values as Document has them, in one round trip.
	// An id that is there already is refused: class Constraint, UniqueKey.
	Insert(ctx context.Context, c *Collection, documents ...[]Value) error

	// Update changes the documents with these ids in one round trip. args are the arguments
	// of one after another. found is how many there were that met the condition.
	Update(ctx context.Context, u *Update, ids, args []Value) (found int, err error)

	// FindAndUpdate changes one document and returns it as it was before, valid until the
	// next Begin. From then on no other transaction changes it before this one has ended.
	// It is not Found if it is not there or does not meet the condition.
	FindAndUpdate(ctx context.Context, u *Update, id Value, args []Value) (before Document, err error)

	// Commit ends the transaction. Only nil means that it is committed.
	Commit(ctx context.Context) error

	// Rollback gives up the open transaction; without one it does nothing.
	Rollback(ctx context.Context) error

	// Scan hands every document whose id is at least from to document, in the order of the
	// ids, and at most limit of them; a Null from is the first, and limit 0 is all. The
	// values are valid until document returns. In a transaction the documents are of its
	// snapshot. Without one they may be of several moments.
	Scan(ctx context.Context, c *Collection, from Value, limit int, document func(values []Value) error) error

	// Reset drops what the session had of its server and finds one again, once: the caller
	// backs off and calls again.
	Reset(ctx context.Context) error

	Close() error
}

// DocumentRanger is satisfied by a database of documents whose transactions read ranges of
// documents and remove some.
type DocumentRanger interface {
	// DocumentRangeSession opens a session as DocumentSession does.
	DocumentRangeSession(ctx context.Context, options SessionOptions) (DocumentRangeSession, error)
}

// DocumentRange is a condition on documents: From ≤ id < To, and where Field is not 0 that
// this field is less than Below.
type DocumentRange struct {
	From, To Value
	Field    int // its place among the values
	Below    Value
}

// DocumentRangeSession is a DocumentSession whose transactions read ranges.
type DocumentRangeSession interface {
	DocumentSession

	// Range hands every document of a range, in the order of the ids and from the
	// transaction's snapshot, to document, which must not keep the values and calls no
	// method of the session. An error of document ends the transaction and is returned.
	Range(ctx context.Context, c *Collection, r DocumentRange, document func(values []Value) error) error

	// Delete removes the documents with these ids in one round trip. found is how many
	// there were.
	Delete(ctx context.Context, c *Collection, ids []Value) (found int, err error)
}
