package dataset

import (
	"context"
	"errors"
	"strconv"

	"stroppy/internal/db"
)

// Tables are a workload's tables.
type Tables interface {
	// Probe returns a name of a table that the workload makes, and a statement that
	// fails where there is none.
	Probe() (table string, s *db.Statement)
	// Count counts the things that a load in batches has made.
	Count() *db.Statement
	// Fill makes the tables and what of n.Size things is not there yet: n.Rows are,
	// where a load is gone on with.
	Fill(ctx context.Context, n Note, progress func(done uint64)) error
}

// SQL is a Store in a SQL database. The note is a table.
type SQL struct {
	Database db.SQL
	kind     Kind
	tables   Tables

	create                            string
	read, clear, insert, set, compare *db.Statement
}

var _ Store = (*SQL)(nil)

// NewSQL returns the store of a kind.
func NewSQL(kind Kind, database db.SQL, tables Tables) *SQL {
	d := database.Dialect()
	update := func() *db.StatementWriter {
		return d.Write("UPDATE ", kind.Table, " SET value = ").Param(db.Text).Text(" WHERE name = ").Param(db.Text)
	}
	return &SQL{
		Database: database, kind: kind, tables: tables,
		create: "CREATE TABLE IF NOT EXISTS " + kind.Table + " (\n" +
			"\tname " + d.TextType(16) + " NOT NULL PRIMARY KEY,\n" +
			"\tvalue " + d.TextType(32) + " NOT NULL\n)" + d.TableOptions,
		read:    d.Write("SELECT name, value FROM ", kind.Table).End(db.Text, db.Text),
		clear:   d.Write("DELETE FROM ", kind.Table).End(),
		insert:  d.Write("INSERT INTO ", kind.Table, " (name, value) VALUES (").Param(db.Text).Text(", ").Param(db.Text).Text(")").End(),
		set:     update().End(),
		compare: update().Text(" AND value = ").Param(db.Text).End(),
	}
}

// With lends a session for something that is no client's transaction.
func (q *SQL) With(ctx context.Context, use func(s db.SQLSession) error) error {
	s, err := q.Database.Session(ctx, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		return err
	}
	err = use(s)
	if e := s.Close(); err == nil {
		err = e
	}
	return err
}

// Transact runs add's statements as one transaction.
func Transact(ctx context.Context, s db.SQLSession, add func() error) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := add(); err != nil {
		_ = s.Rollback(ctx) // the first error is the one to tell
		return err
	}
	return s.Commit(ctx)
}

// Each runs statements without parameters, each by itself.
func (q *SQL) Each(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := q.Database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Read implements Store.
func (q *SQL) Read(ctx context.Context) (Note, error) {
	values := map[string]string{}
	err := q.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, q.read, nil, func(row []db.Value) error {
			values[string(row[0].Text)] = string(row[1].Text)
			return nil
		})
	})
	var e *db.Error
	if errors.As(err, &e) && e.Class == db.Fatal && q.answers(ctx) {
		// A statement that the server refuses although it answers: there is no
		// such table, or it may not be read, and then making it will say so.
		return Note{Unread: err}, nil
	}
	return q.kind.parse(values), err
}

// answers says whether the server can be reached with these credentials.
func (q *SQL) answers(ctx context.Context) bool {
	_, err := q.Database.Info(ctx)
	return err == nil
}

// Foreign implements Store.
func (q *SQL) Foreign(ctx context.Context) (string, error) {
	table, probe := q.tables.Probe()
	err := q.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, probe, nil, func([]db.Value) error { return nil })
	})
	switch {
	case err == nil:
		return "this database has a table " + table, nil
	case db.ClassOf(err) == db.Fatal:
		return "", nil // there is none
	}
	return "", err
}

// Begin implements Store. It marks the data as loading first, so that a crash at
// any later moment leaves data that say so.
func (q *SQL) Begin(ctx context.Context, n Note) error {
	if err := q.Database.Exec(ctx, q.create); err != nil {
		return err
	}
	return q.With(ctx, func(s db.SQLSession) error {
		return Transact(ctx, s, func() error { return q.write(ctx, s, n) })
	})
}

// write adds the statements that write the note of a load that starts.
func (q *SQL) write(ctx context.Context, s db.SQLSession, n Note) error {
	if _, err := s.Do(ctx, q.clear, nil); err != nil {
		return err
	}
	for _, row := range q.kind.starting(n) {
		args := []db.Value{{Text: []byte(row[0])}, {Text: []byte(row[1])}}
		if _, err := s.Do(ctx, q.insert, args); err != nil {
			return err
		}
	}
	return nil
}

// Resumable implements Store. It trusts the count that was committed with the
// rows, and only if it is the number of rows. A bulk load is all or nothing, so it
// leaves none.
func (q *SQL) Resumable(ctx context.Context, n Note) (uint64, error) {
	if n.Rows == 0 {
		return 0, nil
	}
	var rows uint64
	err := q.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, q.tables.Count(), nil, func(row []db.Value) error {
			rows = uint64(row[0].Int)
			return nil
		})
	})
	if err != nil || rows != n.Rows || rows > n.Size {
		return 0, err
	}
	return rows, nil
}

// Fill implements Store.
func (q *SQL) Fill(ctx context.Context, n Note, progress func(done uint64)) error {
	return q.tables.Fill(ctx, n, progress)
}

// Batches makes things in transactions of size, from n.Rows on: each of them also
// writes how far the load has come.
func (q *SQL) Batches(ctx context.Context, n Note, size uint64, progress func(done uint64), add func(s db.SQLSession, from, to uint64) error) error {
	return q.With(ctx, func(s db.SQLSession) error {
		for from := n.Rows; from < n.Size; {
			to := min(from+size, n.Size)
			err := Transact(ctx, s, func() error {
				if err := add(s, from, to); err != nil {
					return err
				}
				return q.put(ctx, s, nameRows, strconv.FormatUint(to, 10))
			})
			if err != nil {
				return err
			}
			from = to
			progress(to)
		}
		return nil
	})
}

func (q *SQL) put(ctx context.Context, s db.SQLSession, name, value string) error {
	_, err := s.Do(ctx, q.set, []db.Value{{Text: []byte(value)}, {Text: []byte(name)}})
	return err
}

// Finish implements Store.
func (q *SQL) Finish(ctx context.Context, n Note) error {
	return q.With(ctx, func(s db.SQLSession) error {
		return Transact(ctx, s, func() error {
			// Written first, so that a load that begins meanwhile is waited for and seen.
			if err := q.put(ctx, s, nameState, stateLoaded); err != nil {
				return err
			}
			note, err := s.Do(ctx, q.read, nil)
			if err == nil {
				err = s.Flush(ctx)
			}
			if err != nil {
				return err
			}
			for i, rows := 0, s.Result(note); i < rows.Rows(); i++ {
				if row := rows.Row(i); string(row[0].Text) == nameLoad && string(row[1].Text) != n.Load {
					return q.kind.overtaken()
				}
			}
			return nil
		})
	})
}

// errRunTaken says that another process took the run number first.
var errRunTaken = &db.Error{Class: db.Aborted, Op: "take the next run number", Err: errors.New("another process took it at the same time")}

// NextRun implements Store.
func (q *SQL) NextRun(ctx context.Context, n Note) error {
	return q.With(ctx, func(s db.SQLSession) error {
		var result int
		err := Transact(ctx, s, func() (err error) {
			was, is := strconv.FormatUint(n.Run, 10), strconv.FormatUint(n.Run+1, 10)
			result, err = s.Do(ctx, q.compare,
				[]db.Value{{Text: []byte(is)}, {Text: []byte(nameRun)}, {Text: []byte(was)}})
			return err
		})
		if err == nil && s.Result(result).Affected != 1 {
			err = errRunTaken
		}
		return err
	})
}
