package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/db"
	"stroppy/internal/workload"
)

// Procedures is a Store in a database of procedures alone. The metadata are a table, which
// statements read and write.
type Procedures struct {
	Database db.ProcedureStore

	kind       Kind
	tables     []ProcedureTable // of the data; the first has a row a thing
	procedures []*db.Procedure  // that loads and clients call
}

// ProcedureTable is a table and what makes it.
type ProcedureTable struct {
	Name    string
	Columns string   // what stands in the brackets of CREATE TABLE
	Key     string   // the column by which it is parted among the partitions; empty: every partition has all of it
	Sums    []string // the columns of numbers that a census adds up
}

func (t *ProcedureTable) create() []string {
	list := []string{"CREATE TABLE " + t.Name + " (" + t.Columns + ")"}
	if t.Key != "" {
		list = append(list, "PARTITION TABLE "+t.Name+" ON COLUMN "+t.Key)
	}
	return list
}

// NewProcedures returns the store of a kind. Of the modes in which statements travel there
// is one, which mode is set to.
func NewProcedures(kind Kind, database db.ProcedureStore, mode *string, tables []ProcedureTable, procedures []*db.Procedure) (*Procedures, error) {
	if *mode != "" && *mode != workload.Procedure {
		return nil, fmt.Errorf("mode %s needs transactions of statements, and this database has procedures alone: leave it out, or take procedure", *mode)
	}
	*mode = workload.Procedure
	meta := ProcedureTable{Name: kind.Table, Columns: "name VARCHAR(32) NOT NULL, value VARCHAR(64) NOT NULL, PRIMARY KEY (name)"}
	return &Procedures{Database: database, kind: kind, tables: append(tables, meta), procedures: procedures}, nil
}

// query runs a statement whose parameters are texts; row may be nil.
func (p *Procedures) query(ctx context.Context, sql string, row func([]db.Value) error, args ...string) error {
	return p.Database.Query(ctx, sql, slices.Repeat([]db.Type{db.Text}, len(args)), texts(args...), row)
}

// has says whether a table is there.
func (p *Procedures) has(ctx context.Context, table string) (bool, error) {
	names, err := p.Database.Tables(ctx)
	return slices.Contains(names, table), err
}

// Read implements Store.
func (p *Procedures) Read(ctx context.Context) (Metadata, error) {
	there, err := p.has(ctx, p.kind.Table)
	if err != nil || !there {
		return Metadata{}, err
	}
	values := map[string]string{}
	err = p.query(ctx, "SELECT name, value FROM "+p.kind.Table, func(row []db.Value) error {
		values[string(row[0].Text)] = string(row[1].Text)
		return nil
	})
	return p.kind.parse(values), err
}

// Foreign implements Store.
func (p *Procedures) Foreign(ctx context.Context) (string, error) {
	names, err := p.Database.Tables(ctx)
	for _, t := range p.tables {
		if slices.Contains(names, t.Name) && t.Name != p.kind.Table {
			return "this database has a table " + t.Name, err
		}
	}
	return "", err
}

// Begin implements Store. It marks the data as loading first, so that a crash at any later
// moment leaves data that say so.
func (p *Procedures) Begin(ctx context.Context, m Metadata) error {
	names, err := p.Database.Tables(ctx)
	if err != nil {
		return err
	}
	meta := p.tables[len(p.tables)-1]
	if !slices.Contains(names, meta.Name) {
		err = p.Database.Exec(ctx, meta.create()...)
	}
	for _, row := range append([][2]string{{nameState, StateLoading}}, p.kind.starting(m)...) {
		if err == nil {
			err = p.query(ctx, "UPSERT INTO "+meta.Name+" (name, value) VALUES (?, ?)", nil, row[:]...)
		}
	}
	var create []string
	for _, t := range p.tables[:len(p.tables)-1] {
		switch {
		case err != nil:
		case slices.Contains(names, t.Name):
			err = p.query(ctx, "DELETE FROM "+t.Name, nil)
		default:
			create = append(create, t.create()...)
		}
	}
	if err == nil {
		err = p.Database.Exec(ctx, create...)
	}
	if err == nil {
		err = p.Database.Define(ctx, p.procedures...)
	}
	return err
}

// Census implements Store. The database counts the rows of each table and adds up its
// columns; a digest of the sums is that of the rows.
func (p *Procedures) Census(ctx context.Context, _ Metadata) (Census, error) {
	names, err := p.Database.Tables(ctx)
	if err != nil {
		return nil, err
	}
	return censusOf(ctx, p.tables[:len(p.tables)-1], func(ctx context.Context, of ProcedureTable) (Part, error) {
		part := Part{Name: "the table " + of.Name, Things: "rows", Whole: true, Sums: map[string]int64{}}
		if !slices.Contains(names, of.Name) {
			part.Missing = errNoTable
			return part, nil
		}
		query := "SELECT COUNT(*)"
		for _, column := range of.Sums {
			query += ", SUM(" + column + ")"
		}
		err := p.query(ctx, query+" FROM "+of.Name, func(row []db.Value) error {
			part.Rows = uint64(row[0].Int)
			h := hashStart
			for i, column := range of.Sums {
				part.Sums[column] = row[1+i].Int
				h = h.word(uint64(row[1+i].Int))
			}
			part.Digest = h.end()
			return nil
		})
		return part, err
	})
}

// errNoTable says that a table is not there.
var errNoTable = errors.New("there is no such table")

// Rows implements Store. What a load that failed has left is loaded anew.
func (p *Procedures) Rows(context.Context) (uint64, error) { return 0, nil }

// Set implements Store.
func (p *Procedures) Set(ctx context.Context, name, value, guard, was string) error {
	table := p.kind.Table
	return p.query(ctx, "UPDATE "+table+" SET value = ? WHERE name = ? AND EXISTS (SELECT 1 FROM "+table+" WHERE name = ? AND value = ?)",
		func(changed []db.Value) error {
			if changed[0].Int != 1 {
				return errChanged
			}
			return nil
		}, value, name, guard, was)
}

// Prepare implements Store. It makes the procedures that are not there.
func (p *Procedures) Prepare(ctx context.Context, _ uint64) error {
	return p.Database.Define(ctx, p.procedures...)
}

// insertions are how many rows a load has under way.
const insertions = 128

// Insert calls a procedure for each of size rows, many at a time; row fills in the
// arguments of row n.
func (p *Procedures) Insert(ctx context.Context, procedure *db.Procedure, size uint64, progress func(done uint64), row func(n uint64, args []db.Value)) error {
	sessions, err := p.sessions(ctx)
	if err != nil {
		return err
	}
	var done atomic.Uint64
	report := make(chan struct{}, 1) // held while progress is reported
	group, ctx := errgroup.WithContext(ctx)
	each := uint64(len(sessions))
	for i, s := range sessions {
		group.Go(func() error {
			defer s.Close()
			args := make([]db.Value, len(procedure.Params))
			for n := uint64(i); n < size; n += each {
				row(n, args)
				if _, err := s.Call(ctx, procedure, args); err != nil {
					return err
				}
				if made := done.Add(1); made%ProgressRows == 0 {
					report <- struct{}{}
					progress(made)
					<-report
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	progress(size)
	return nil
}

// sessions opens those of a load, on one connection where they can share it.
func (p *Procedures) sessions(ctx context.Context) ([]db.ProcedureSession, error) {
	if several, ok := p.Database.(db.Multiplexer[db.ProcedureSession]); ok {
		return several.Streams(ctx, insertions, db.SessionOptions{})
	}
	s, err := p.Database.ProcedureSession(ctx, db.SessionOptions{})
	return []db.ProcedureSession{s}, err
}

// PageRows is how many rows of numbers one statement downloads.
const PageRows = 20_000

// pageBytes bounds the bytes of a page, so that the answer fits a message.
const pageBytes = 4 << 20

// RowsOf is how many rows of so many bytes a page has.
func RowsOf(bytes int) int { return min(max(pageBytes/(bytes+1), 1), PageRows) }

// Download hands over all rows of a table in the order of its key, in pages: nobody
// writes to it meanwhile. A database that has lost the table has lost its rows. columns
// begin with the key, of whole numbers and at most one text, which ends it.
func (p *Procedures) Download(ctx context.Context, table string, columns []string, key []db.Type, page int, row func([]db.Value) error) error {
	there, err := p.has(ctx, table)
	if err != nil || !there {
		return err
	}
	keys := columns[:len(key)]
	where, repeats := after(keys)
	sql := fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT %d", strings.Join(columns, ", "), table, where, strings.Join(keys, ", "), page)
	types := make([]db.Type, len(repeats))
	last := make([]db.Value, len(key)) // before the first key there can be
	for i, t := range key {
		last[i] = db.Value{Int: -1 << 62}
		if t == db.Text {
			last[i] = db.Value{Text: []byte{}}
		}
	}
	args := make([]db.Value, len(repeats))
	for {
		for i, k := range repeats {
			types[i], args[i] = key[k], last[k]
		}
		rows := 0
		err := p.Database.Query(ctx, sql, types, args, func(values []db.Value) error {
			rows++
			for i := range key {
				last[i].Int, last[i].Text = values[i].Int, append(last[i].Text[:0], values[i].Text...)
			}
			return row(values)
		})
		if err != nil || rows < page {
			return err
		}
	}
}

// after is the condition for rows behind a key in the order of its columns, and which
// column each parameter is. It begins with the first column alone, so that an index is used.
func after(keys []string) (where string, params []int) {
	where, params = keys[0]+" >= ?", []int{0}
	var either []string
	for i := range keys {
		var all []string
		for j := range keys[:i] {
			all, params = append(all, keys[j]+" = ?"), append(params, j)
		}
		all, params = append(all, keys[i]+" > ?"), append(params, i)
		either = append(either, strings.Join(all, " AND "))
	}
	return where + " AND (" + strings.Join(either, " OR ") + ")", params
}

// Count counts the rows of a table.
func (p *Procedures) Count(ctx context.Context, table string) (n uint64, err error) {
	there, err := p.has(ctx, table)
	if err != nil || !there {
		return 0, err
	}
	err = p.query(ctx, "SELECT COUNT(*) FROM "+table, func(row []db.Value) error {
		n = uint64(row[0].Int)
		return nil
	})
	return n, err
}
