package script

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// receiptTable holds one row for each transaction that wrote. kind is the number of the script,
// and NULL in a tombstone. In the row of a run it is the identity of the run.
const receiptTable = "stroppy_receipt"

// receipts holds the statements about receipts.
type receipts struct {
	create                                   string
	insert, tombstone, find, latest, all, is *db.Statement
}

func newReceipts(d *db.Dialect) *receipts {
	return &receipts{
		create:    d.CreateTable(receiptTable, "id "+d.IntegerType+" NOT NULL", "kind "+d.IntegerType, "PRIMARY KEY (id)"),
		insert:    d.Statement("INSERT INTO " + receiptTable + " (id, kind) VALUES ({integer}, {integer})"),
		tombstone: d.Statement("INSERT INTO " + receiptTable + " (id) VALUES ({integer})" + d.DoNothing),
		find:      d.Statement("SELECT id, kind FROM "+receiptTable+" WHERE id = {integer}", db.Integer, db.Integer),
		latest:    d.Statement("SELECT max(id) FROM "+receiptTable, db.Integer),
		all:       d.Statement("SELECT id, kind FROM "+receiptTable+" WHERE id > {integer} AND id < {integer} ORDER BY id", db.Integer, db.Integer),
		is:        d.Statement("SELECT id, kind FROM "+receiptTable+" WHERE id = 0", db.Integer, db.Integer),
	}
}

// exist reports whether the table of receipts exists. If the server refuses to read it but answers, there is none.
func (r *receipts) exist(ctx context.Context, database db.SQL) (bool, error) {
	err := query(ctx, database, r.is, nil, ignore)
	if db.ClassOf(err) == db.Fatal {
		_, err := database.Info(ctx)
		return false, err
	}
	return err == nil, err
}

// query runs a query in a session of its own.
func query(ctx context.Context, database db.SQL, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	s, err := database.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return err
	}
	return errors.Join(s.Query(ctx, statement, args, row), s.Close())
}

// has reports whether the table has the row of a run with this identity.
func (r *receipts) has(ctx context.Context, database db.SQL, run uint64, identity int64) (found bool, err error) {
	if there, err := r.exist(ctx, database); err != nil || !there {
		return false, err
	}
	key := []db.Value{{Int: int64(history.NewID(run, 0, 0))}}
	err = query(ctx, database, r.find, key, func(row []db.Value) error {
		found = !row[1].Null && row[1].Int == identity
		return nil
	})
	return found, err
}

// lastRun is the largest number of a run.
const lastRun = 1<<history.RunBits - 1

// takeRun inserts the row of the next run and returns its number. If another process has taken the number, it tries
// the next one.
func (r *receipts) takeRun(ctx context.Context, database db.SQL, identity int64) (run uint64, err error) {
	s, err := database.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.Query(ctx, r.latest, nil, func(row []db.Value) error {
		run = history.ID(row[0].Int).Run()
		return nil
	})
	for err == nil {
		if run++; run > lastRun {
			return 0, fmt.Errorf("the table %s has the receipts of %d runs, and has no room for more: remove it with `stroppy cleanup`", receiptTable, lastRun)
		}
		id := int64(history.NewID(run, 0, 0))
		err = s.Query(ctx, r.insert, []db.Value{{Int: id}, {Int: identity}}, ignore)
		if db.ConstraintOf(err) != db.UniqueKey {
			break
		}
		err = nil
	}
	return run, err
}

// download writes the receipts of a run into the end state. Each is a row of the only object, whose value is the number
// of receipts.
func (r *receipts) download(ctx context.Context, database db.SQL, run uint64, end *history.EndWriter, progress func(done, total uint64)) error {
	count, rows := int64(0), uint64(0)
	between := []db.Value{{Int: int64(history.NewID(run, 0, 0))}, {Int: int64(history.NewID(run+1, 0, 0))}}
	err := query(ctx, database, r.all, between, func(row []db.Value) error {
		id := history.ID(row[0].Int)
		if rows++; rows%(1<<16) == 0 {
			progress(rows, 0)
		}
		if row[1].Null {
			return end.Row(history.Row{Transaction: id, Mark: history.Tombstone})
		}
		count++
		return end.Row(history.Row{Transaction: id, Amount: 1})
	})
	if err != nil {
		return err
	}
	return end.Object(history.Object{Value: count})
}
