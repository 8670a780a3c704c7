package dataset

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/db"
)

// Tables is a Store in a database of tables without free SQL. The metadata are a table. What
// a workload embeds it for has a Fill of its own.
type Tables struct {
	Database  db.TableStore
	Procedure *db.OwnProcedure // that Prepare makes ready; nil: none

	kind   Kind
	meta   *db.Table
	tables []*db.Table // of the data, and then the metadata

	read, write, set, value *db.Statement
}

// NewTables returns the store of a kind, whose data are in these tables.
func NewTables(kind Kind, database db.TableStore, tables ...*db.Table) *Tables {
	d := database.Dialect()
	meta := &db.Table{Name: kind.Table, Columns: []db.TableColumn{{Name: "name", Type: db.Text, Length: 16}, {Name: "content", Type: db.Text, Length: 32}}}
	return &Tables{
		Database: database, kind: kind, meta: meta, tables: append(tables, meta),
		read:  d.Statement("SELECT name, content FROM "+kind.Table, db.Text, db.Text),
		write: d.Statement("INSERT INTO " + kind.Table + " VALUES ({text}, {text})"),
		set:   d.Counted("UPDATE " + kind.Table + " SET content = {text} WHERE name = {text}"),
		value: d.Statement("SELECT content FROM "+kind.Table+" WHERE name = {text}", db.Text),
	}
}

// With lends a session for something that is no client's transaction.
func (t *Tables) With(ctx context.Context, use func(s db.TableSession) error) error {
	return with(ctx, t.Database.Session, use)
}

// Change carries out one transaction.
func (t *Tables) Change(ctx context.Context, add func(s db.TableSession) error) error {
	return t.With(ctx, func(s db.TableSession) error {
		return transact(ctx, s, func() error { return add(s) })
	})
}

// Read implements Store.
func (t *Tables) Read(ctx context.Context) (Metadata, error) {
	values := map[string]string{}
	err := t.Each(ctx, t.meta, t.read, func(row []db.Value) error {
		values[string(row[0].Text)] = string(row[1].Text)
		return nil
	})
	delete(values, nameLock)
	return t.kind.parse(values), err
}

// nameLock is a row of the metadata that says nothing: whoever changes others locks it.
const nameLock = "lock"

// Each hands over the rows of a query on one table. A database that has lost the table has
// lost its rows.
func (t *Tables) Each(ctx context.Context, of *db.Table, query *db.Statement, row func([]db.Value) error) error {
	there, err := t.Database.Exists(ctx, of)
	if err != nil || !there {
		return err
	}
	return t.With(ctx, func(s db.TableSession) error { return s.Query(ctx, query, nil, row) })
}

// Foreign implements Store.
func (t *Tables) Foreign(ctx context.Context) (string, error) {
	for _, table := range t.tables {
		if there, err := t.Database.Exists(ctx, table); err != nil || there {
			return "this database has a table " + table.Name, err
		}
	}
	return "", nil
}

// Begin implements Store. The tables of an earlier load are gone with their database.
func (t *Tables) Begin(ctx context.Context, m Metadata) error {
	if err := t.Database.MakeTables(ctx, t.tables...); err != nil {
		return err
	}
	return t.Change(ctx, func(s db.TableSession) error {
		for _, row := range append(t.kind.starting(m), [2]string{nameLock, ""}) {
			if _, err := s.Do(ctx, t.write, texts(row[:]...)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Census implements Store. Such a database reads a table as a whole or a row by its key, and a
// read of a whole table beside writers may leave locks. So data of more rows than the bound
// are not read, nor are any while a run goes on: they have no parts then.
func (t *Tables) Census(ctx context.Context, m Metadata) (Census, error) {
	if m.Size > censusRows || m.seal.ended != m.Run {
		return nil, nil
	}
	return censusOf(ctx, t.tables[:len(t.tables)-1], func(ctx context.Context, of *db.Table) (Part, error) {
		var columns []column
		var names []string
		var types []db.Type
		for _, c := range of.Columns {
			columns, names, types = append(columns, column{c.Name, c.Type}), append(names, c.Name), append(types, c.Type)
		}
		tally := newTally("the table "+of.Name, "rows", columns)
		all := &db.Statement{SQL: "SELECT " + strings.Join(names, ", ") + " FROM " + of.Name, Columns: types}
		return tally.close(t.Each(ctx, of, all, func(row []db.Value) error {
			if err := tally.row(row); err != nil { // the rows come in no order
				tally.part.Digest = 0
			}
			return nil
		}))
	})
}

// inserters are how many sessions a load has, and insertionRows how many rows each of
// their transactions makes.
const (
	inserters     = 32
	insertionRows = 128
)

// Insert executes a statement for each of size rows, in transactions of several sessions; row
// fills in the arguments of row n.
func (t *Tables) Insert(ctx context.Context, statement *db.Statement, size uint64, progress func(done uint64), row func(n uint64, args []db.Value)) error {
	var next atomic.Uint64
	var reporting sync.Mutex
	done := uint64(0)
	group, ctx := errgroup.WithContext(ctx)
	for range min(inserters, (size+insertionRows-1)/insertionRows) {
		group.Go(func() error {
			return t.With(ctx, func(s db.TableSession) error {
				args := make([]db.Value, len(statement.Params))
				for {
					to := next.Add(insertionRows)
					from := to - insertionRows
					if to = min(to, size); from >= to {
						return nil
					}
					err := transact(ctx, s, func() error {
						for n := from; n < to; n++ {
							row(n, args)
							if _, err := s.Do(ctx, statement, args); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						return err
					}
					reporting.Lock()
					done += to - from
					progress(done)
					reporting.Unlock()
				}
			})
		})
	}
	return group.Wait()
}

// Rows implements Store. What a load that failed has left is loaded anew.
func (t *Tables) Rows(context.Context) (uint64, error) { return 0, nil }

// Set implements Store. The guard is read by another session, because what a transaction has
// read it cannot write. Meanwhile a lock keeps others from changing it.
func (t *Tables) Set(ctx context.Context, name, value, guard, was string) error {
	return t.Change(ctx, func(s db.TableSession) error {
		if err := t.put(ctx, s, nameLock, ""); err != nil {
			return err
		}
		is := ""
		err := t.With(ctx, func(other db.TableSession) error {
			return other.Query(ctx, t.value, texts(guard), func(row []db.Value) error {
				is = string(row[0].Text)
				return nil
			})
		})
		if err == nil && is != was {
			err = errChanged
		}
		if err != nil {
			return err
		}
		return t.put(ctx, s, name, value)
	})
}

// put gives a name of the metadata a value.
func (t *Tables) put(ctx context.Context, s db.TableSession, name, value string) error {
	set, err := s.Do(ctx, t.set, texts(value, name))
	if err == nil && s.Result(set).Affected != 1 {
		err = errChanged
	}
	return err
}

// Prepare implements Store. It makes the procedure ready that is called, if there is one.
func (t *Tables) Prepare(ctx context.Context, _ uint64) error {
	if t.Procedure == nil {
		return nil
	}
	return t.Database.Define(ctx, t.Procedure)
}
