package schedule

import (
	"context"
	"errors"

	"stroppy/internal/db"
)

// replica is a table on a database that follows the one which has it.
type replica[S interface {
	comparable
	Reset(ctx context.Context) error
	Close() error
}] struct {
	open    func(ctx context.Context, o db.SessionOptions) (S, error)
	rows    func(ctx context.Context, s S) ([]Row, error)
	client  func(s S) Client
	control S // zero before the first question
}

var errOtherModel = errors.New("a replica has another data model than the database that it follows")

func (*replica[S]) Refuses(*Schedule) string { return "" }

// Fill is an error: what a replica has comes from the other database.
func (*replica[S]) Fill(context.Context, []Row, bool) error {
	return errors.New("a replica is not filled")
}

func (r *replica[S]) Rows(ctx context.Context) (rows []Row, err error) {
	var none S
	if r.control == none {
		if r.control, err = r.open(ctx, db.SessionOptions{Mode: db.Interactive}); err != nil {
			r.control = none
			return nil, err
		}
	}
	rows, err = r.rows(ctx, r.control)
	if err != nil && unusable(err) {
		_ = r.control.Close() // the next call opens another
		r.control = none
	}
	return rows, err
}

func (r *replica[S]) Client(ctx context.Context, isolation string) (Client, error) {
	s, err := r.open(ctx, db.SessionOptions{Isolation: isolation, Mode: db.Interactive})
	if err != nil {
		return nil, err
	}
	return r.client(s), nil
}

func (r *replica[S]) Replica(db.Database) (Table, error) {
	return nil, errors.New("a replica has no replicas of its own")
}

func (r *replica[S]) Remove(context.Context) error {
	var none S
	if r.control == none {
		return nil
	}
	err := r.control.Close()
	r.control = none
	return err
}
