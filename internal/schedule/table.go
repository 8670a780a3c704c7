package schedule

import (
	"context"
	"errors"

	"stroppy/internal/db"
)

// NewTable returns the table in the data model of a database. It returns an error if transactions
// of the database cannot have several steps.
func NewTable(database db.Database) (Table, error) {
	switch d := database.(type) {
	case db.SQL:
		return NewSQL(d), nil
	case db.KV:
		return NewKV(d), nil
	case db.Records:
		switch limits := d.Limits(); {
		case limits.Simple:
			return nil, errors.New("transactions of this database cannot read a record before they write it, or write under a condition")
		case limits.Deferred:
			return nil, errors.New("a transaction of this database is one procedure call, so no other client acts between its steps")
		}
		return NewRecords(d), nil
	}
	return nil, errors.New("this database has no transactions of several steps")
}

// session is a session of any data model.
type session interface {
	comparable
	db.Transactor
	Close() error
}

// opener opens a session.
type opener[S session] func(ctx context.Context, o db.SessionOptions) (S, error)

// base is the part of a table that all data models share. The table itself uses one session,
// which it opens when it needs it and gives up when it is broken.
type base[S session] struct {
	open    opener[S]
	rows    func(ctx context.Context, s S) ([]Row, error)
	client  func(s S) Client
	control S // zero: none is open
}

// with calls use with the session of the table.
func (b *base[S]) with(ctx context.Context, use func(s S) error) error {
	var none S
	if b.control == none {
		s, err := b.open(ctx, db.SessionOptions{Mode: db.Interactive})
		if err != nil {
			return err
		}
		b.control = s
	}
	err := use(b.control)
	if err != nil && unusable(err) {
		_ = b.close() // the next call opens another
	}
	return err
}

// close closes the session of the table.
func (b *base[S]) close() (err error) {
	var none S
	if b.control != none {
		err = b.control.Close()
		b.control = none
	}
	return err
}

// Rows implements Table.
func (b *base[S]) Rows(ctx context.Context) (rows []Row, err error) {
	err = b.with(ctx, func(s S) error {
		rows, err = b.rows(ctx, s)
		return err
	})
	return rows, err
}

// Client implements Table.
func (b *base[S]) Client(ctx context.Context, isolation string) (Client, error) {
	s, err := b.open(ctx, db.SessionOptions{Isolation: isolation, Mode: db.Interactive})
	if err != nil {
		return nil, err
	}
	return b.client(s), nil
}

// replica is a table on a database that follows the one of another table.
type replica[S session] struct{ base[S] }

// newReplica returns the replica of a table on a database, or an error if ok is false, because the
// database has another data model.
func newReplica[S session](of *base[S], open opener[S], ok bool) (Table, error) {
	if !ok {
		return nil, errors.New("a replica has another data model than the database that it follows")
	}
	return &replica[S]{base[S]{open: open, rows: of.rows, client: of.client}}, nil
}

func (*replica[S]) Refuses(*Schedule) string { return "" }

// Fill returns an error: a replica has the rows of the other database.
func (*replica[S]) Fill(context.Context, []Row, bool) error {
	return errors.New("a replica is not filled")
}

func (*replica[S]) Replica(db.Database) (Table, error) {
	return nil, errors.New("a replica has no replicas of its own")
}

func (r *replica[S]) Remove(context.Context) error { return r.close() }
