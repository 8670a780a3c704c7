package events

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// procedureModel is the log on a database of procedures alone. A stream is in one partition,
// and so is every append.
type procedureModel struct {
	*dataset.Procedures
	config *Config

	end       *db.Procedure   // the last place of a stream, and the writer at a place and whether it is void
	tombstone *db.Procedure   // takes a place
	appends   []*db.Procedure // by how many pieces they insert
}

// mostPieces bounds the statements of a procedure.
const mostPieces = 200

var pieceColumns = []string{"stream_id", "place", "piece", "writer", "member", "body"}

// newProcedureModel fills in what the configuration leaves to the data model.
func newProcedureModel(database db.ProcedureStore, c *Config) (model, error) {
	if err := c.limit(database, 0); err != nil {
		return nil, err
	}
	least, most := uint64(c.Batch)*max((c.Size.Low+c.Fragment-1)/c.Fragment, 1), uint64(c.Batch)*c.pieces()
	if most > mostPieces {
		return nil, fmt.Errorf("a batch of %d events of up to %d pieces makes procedures of %d statements, and one of this database has at most %d: take a smaller batch or larger fragments",
			c.Batch, c.pieces(), most, mostPieces)
	}
	m := &procedureModel{config: c, appends: make([]*db.Procedure, most+1)}
	integer, in := db.Integer, table+" COLUMN stream_id"
	// What can be NULL in the second row is in no type of the first.
	const writer = "writer, CASE WHEN body IS NULL THEN 1 ELSE 0 END FROM " + table + " WHERE stream_id = ? AND place = ? AND piece = 0"
	m.end = workload.NewProcedure(table+"_end", []db.Type{integer, integer, integer}, []db.Type{integer, integer}, in,
		"BEGIN SELECT MAX(place), 0 FROM "+table+" WHERE stream_id = ?; SELECT "+writer+"; END")
	into := "INSERT INTO " + table + " (" + strings.Join(pieceColumns, ", ") + ") VALUES "
	m.tombstone = workload.NewProcedure(table+"_tombstone", []db.Type{integer, integer, integer}, nil, in, into+"(?, ?, 0, ?, 0, NULL)")
	all := []*db.Procedure{m.end, m.tombstone}
	row := []db.Type{integer, integer, integer, integer, integer, db.Text}
	for n := least; n <= most; n++ {
		body := strings.Repeat(into+"(?, ?, ?, ?, ?, ?); ", int(n))
		m.appends[n] = workload.NewProcedure(fmt.Sprintf("%s_append_%d", table, n), slices.Repeat(row, int(n)), nil, in, "BEGIN "+body+"END")
		all = append(all, m.appends[n])
	}
	columns := "stream_id BIGINT NOT NULL, place BIGINT NOT NULL, piece BIGINT NOT NULL, writer BIGINT NOT NULL, member BIGINT NOT NULL," +
		" body VARCHAR(1048576 BYTES), PRIMARY KEY (stream_id, place, piece)"
	var err error
	m.Procedures, err = dataset.NewProcedures(kind, database, &c.Mode, []dataset.ProcedureTable{{Name: table, Columns: columns, Key: "stream_id", Sums: []string{columnPlace}}}, all)
	return m, err
}

// Fill implements dataset.Store. It makes the streams' origins, which are void.
func (m *procedureModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	return m.Insert(ctx, m.tombstone, n.Size, progress, func(stream uint64, args []db.Value) { args[0].Int = int64(stream) })
}

func (m *procedureModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.ProcedureSession(ctx, a.config.SessionOptions())
	return &procedureClient{appender: a, ProcedureSession: s, model: m, ends: newEnds(a)}, err
}

func (m *procedureModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	var err error
	if report.Total, err = m.Count(ctx, table); err != nil {
		return fmt.Errorf("count the events: %w", err)
	}
	err = m.Download(ctx, table, pieceColumns, []db.Type{db.Integer, db.Integer, db.Integer}, dataset.RowsOf(int(min(m.config.Fragment, m.config.Size.High))), func(row []db.Value) error {
		report.Row()
		return r.row(row)
	})
	if err != nil {
		return fmt.Errorf("download the events: %w", err)
	}
	return r.closeRows()
}

// procedureClient appends on a session of its own.
type procedureClient struct {
	*appender
	db.ProcedureSession
	model  *procedureModel
	ends   ends
	args   []db.Value
	values []byte // of all events of the append
}

// Attempt implements load.Client.
func (c *procedureClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.begin(tx)
	err := c.append(ctx, tx)
	if err != nil {
		c.ends.forget(tx)
	}
	if db.ConstraintOf(err) == db.UniqueKey {
		return errTaken
	}
	return err
}

func (c *procedureClient) append(ctx context.Context, tx *history.Transaction) error {
	stream := tx.Ops[0].Object
	end := c.ends.of(stream)
	if end == 0 || c.before != 0 {
		r, err := c.look(ctx, stream, c.before)
		switch {
		case err != nil:
			return err
		case c.before != 0 && r.wrote(tx.ID):
			return load.ErrAlreadyApplied
		case !r.there:
			workload.Decide(tx, noSuchStream)
			return nil
		}
		end = r.end + 1
	}
	c.tried = end // the place behind the last one
	c.args, c.values = c.args[:0], c.values[:0]
	for member := range c.config.Batch {
		// Should the values move later, a piece keeps what it had.
		from := len(c.values)
		c.values = append(c.values, c.make(tx.ID, uint32(member))...)
		n := int64(0)
		for body := range slices.Chunk(c.values[from:], int(c.config.Fragment)) {
			c.args = append(c.args, db.Value{Int: int64(stream)}, db.Value{Int: int64(c.tried) + int64(member)}, db.Value{Int: n},
				db.Value{Int: int64(tx.ID)}, db.Value{Int: int64(member)}, db.Value{Text: body})
			n++
		}
	}
	if _, err := c.Call(ctx, c.model.appends[len(c.args)/len(pieceColumns)], c.args); err != nil {
		return err
	}
	done(tx, c.tried-1)
	c.ends.set(stream, end+uint64(c.config.Batch))
	return nil
}

// found is what a look at a stream has found: its last place, and the writer at another one.
type found struct {
	end    uint64
	there  bool       // something of the stream is
	writer history.ID // 0: nobody
	void   bool
}

func (f found) wrote(id history.ID) bool { return f.writer == id && !f.void }

func (c *procedureClient) look(ctx context.Context, stream, place uint64) (f found, err error) {
	c.args = append(c.args[:0], db.Value{Int: int64(stream)}, db.Value{Int: int64(stream)}, db.Value{Int: int64(place)})
	r, err := c.Call(ctx, c.model.end, c.args)
	if err != nil {
		return f, err
	}
	if r.Rows() > 0 && !r.Row(0)[0].Null {
		f.end, f.there = uint64(r.Row(0)[0].Int), true
	}
	if r.Rows() > 1 {
		f.writer, f.void = history.ID(r.Row(1)[0].Int), r.Row(1)[1].Int != 0
	}
	return f, nil
}

// ResolveUnknown implements load.Client, as the package's comment says.
func (c *procedureClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if c.unsent(tx) {
		return nil
	}
	stream := tx.Ops[0].Object
	c.args = append(c.args[:0], db.Value{Int: int64(stream)}, db.Value{Int: int64(c.tried)}, db.Value{Int: int64(tx.ID)})
	if _, err := c.Call(ctx, c.model.tombstone, c.args); err != nil && db.ConstraintOf(err) != db.UniqueKey {
		return err
	}
	f, err := c.look(ctx, stream, c.tried)
	switch {
	case err != nil:
		return err
	case f.writer == 0:
		return workload.ErrNeither
	case f.wrote(tx.ID):
		done(tx, c.tried-1)
	default:
		tx.Outcome = history.Aborted
	}
	return nil
}
