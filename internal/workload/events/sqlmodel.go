package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// table holds all pieces of all entries. An append depends on its key. A tombstone and the origin of a stream have a
// body of NULL.
const table = "stroppy_events"

type sqlModel struct {
	*dataset.SQL

	end       *db.Statement // the last place of a stream
	who       *db.Statement // the writer at a place, and whether it is void
	insert    *db.Statement // one piece
	tombstone *db.Statement
	all       *db.Statement // every piece, in order
}

var errNoProcedure = errors.New("events has no mode procedure, because its values would pass through the procedure's language: take pipelined or interactive")

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (model, error) {
	c.Mode = cmp.Or(c.Mode, workload.Pipelined)
	if c.Mode == workload.Procedure {
		return nil, errNoProcedure
	}
	if err := c.limit(database, 0); err != nil {
		return nil, err
	}
	d := database.Dialect()
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, table)}
	m.Tables = []string{table}
	m.Listings = []dataset.Listing{{
		Table: table, Columns: []string{"stream", "place", "piece", "writer", "member", "COALESCE(LENGTH(body), -1)"},
		Types: slices.Repeat([]db.Type{db.Integer}, 6), Key: "stream, place, piece",
	}}
	const into = "INSERT INTO " + table + " (stream, place, piece, writer, member, body) VALUES ("
	m.end = d.Statement("SELECT MAX(place) FROM "+table+" WHERE stream = {integer}", db.Integer)
	m.who = d.Statement("SELECT writer, CASE WHEN body IS NULL THEN 1 ELSE 0 END FROM "+table+
		" WHERE stream = {integer} AND place = {integer} AND piece = 0", db.Integer, db.Integer)
	m.insert = d.Statement(into + "{integer}, {integer}, {integer}, {integer}, {integer}, {text})")
	m.tombstone = d.Statement(into + "{integer}, {integer}, 0, {integer}, 0, NULL)" + d.DoNothing)
	m.all = d.Statement("SELECT stream, place, piece, writer, member, body FROM "+table+" ORDER BY stream, place, piece",
		db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Text)
	return m, nil
}

// Fill implements dataset.Store. It makes the table and the streams' origins.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	var lines []string
	for _, column := range []string{"stream", "place", "piece", "writer", "member"} {
		lines = append(lines, column+" "+m.Dialect.IntegerType+" NOT NULL")
	}
	longest := min(maxValue, cmp.Or(m.Database.Limits().Value, maxValue))
	lines = append(lines, "body "+m.Dialect.TextType(longest), "PRIMARY KEY (stream, place, piece)")
	return m.Bulk(ctx, db.BulkLoad{
		Before:  append(m.Drops(), m.Dialect.CreateTable(table, lines...)),
		Table:   table,
		Columns: []string{"stream", "place", "piece", "writer", "member", "body"},
		Types:   []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Text},
	}, n.Size, progress, func(stream uint64, row []db.Value) {
		row[0].Int, row[5].Null = int64(stream), true
	})
}

func (m *sqlModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.Session(ctx, a.config.SessionOptions())
	return &sqlClient{appender: a, SQLSession: s, model: m}, err
}

// download reads everything in one statement, so that it comes from one snapshot.
func (m *sqlModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	return m.With(ctx, func(s db.SQLSession) error {
		var err error
		if report.Total, err = dataset.Count(ctx, s, table); err != nil {
			return fmt.Errorf("count the events: %w", err)
		}
		err = s.Query(ctx, m.all, nil, func(row []db.Value) error {
			report.Row()
			return r.row(row)
		})
		if err != nil {
			return fmt.Errorf("download the events: %w", err)
		}
		return r.closeRows()
	})
}

// sqlClient appends on a session of its own.
type sqlClient struct {
	*appender
	db.SQLSession
	model *sqlModel
	args  [6]db.Value
}

// errTaken is the error if another client has appended at the place first.
var errTaken = &db.Error{Class: db.Aborted, Op: "append to a stream", Err: errors.New("another client took the place at the same time")}

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	return c.try(ctx, tx, c.append)
}

func (c *sqlClient) append(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	op := &tx.Ops[0]
	end, _ := c.end(op.Object)
	if end == 0 || c.before != 0 {
		found, there, err := c.look(ctx, tx.ID, op.Object)
		if err != nil {
			return err
		}
		if !there {
			workload.Decide(tx, noSuchStream)
			return c.Rollback(ctx)
		}
		end = found + 1
	}
	c.tried = end // the place behind the last one
	for member := range c.config.Batch {
		n := int64(0)
		for body := range slices.Chunk(c.make(tx.ID, uint32(member)), int(c.config.Fragment)) {
			c.args = [...]db.Value{{Int: int64(op.Object)}, {Int: int64(c.tried) + int64(member)}, {Int: n}, {Int: int64(tx.ID)}, {Int: int64(member)}, {Text: body}}
			if _, err := c.Do(ctx, c.model.insert, c.args[:]); err != nil {
				return err
			}
			n++
		}
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	done(tx, c.tried-1)
	c.setEnd(op.Object, end+uint64(c.config.Batch), tx.ID)
	return nil
}

// look reads the last place of a stream, and of a new try whether the one before was
// applied after all. A stream of which nothing is there has lost its origin.
func (c *sqlClient) look(ctx context.Context, id history.ID, stream uint64) (end uint64, there bool, err error) {
	c.args[0] = db.Value{Int: int64(stream)}
	last, err := c.Do(ctx, c.model.end, c.args[:1])
	who := -1
	if err == nil && c.before != 0 {
		c.args[1] = db.Value{Int: int64(c.before)}
		who, err = c.Do(ctx, c.model.who, c.args[:2])
	}
	if err == nil {
		err = c.Flush(ctx)
	}
	if err != nil {
		return 0, false, err
	}
	if who >= 0 && wrote(c.Result(who), id) {
		return 0, false, cmp.Or(c.Rollback(ctx), load.ErrAlreadyApplied)
	}
	if r := c.Result(last); r != nil && r.Rows() > 0 && !r.Row(0)[0].Null {
		end, there = uint64(r.Row(0)[0].Int), true
	}
	return end, there, nil
}

// wrote reports whether the content of a place is an event of a transaction.
func wrote(r *db.Result, id history.ID) bool {
	return r != nil && r.Rows() > 0 && history.ID(r.Row(0)[0].Int) == id && r.Row(0)[1].Int == 0
}

// ResolveUnknown implements load.Client, as the package's comment says.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if c.unsent(tx) {
		return nil
	}
	at := []db.Value{{Int: int64(tx.Ops[0].Object)}, {Int: int64(c.tried)}, {Int: int64(tx.ID)}}
	r, err := workload.TakeRow(ctx, c.SQLSession, c.model.tombstone, at, c.model.who, at[:2])
	switch {
	case err != nil:
		return err
	case wrote(r, tx.ID):
		done(tx, c.tried-1)
	default:
		tx.Outcome = history.Aborted
	}
	return nil
}
