package events

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// recordModel is the log on a database of records. A stream has a record that holds its end. Every piece of an entry is
// a record. A tombstone has no body.
type recordModel struct {
	*dataset.Records
	streams, pieces *db.Collection
	advance         *db.Update // moves the end of a stream
	setEnd          *db.Update
}

// The places of the fields among the values of a stream's end.
const (
	endPlace = 1 + iota
	endWriter
)

// The places of the fields among the values of a piece.
const (
	pieceWriter = 1 + iota
	pieceMember
	pieceBody
	pieceWidth
)

// newRecordModel returns the data model. It completes the configuration with the defaults of the model.
func newRecordModel(database db.Records, c *Config) (model, error) {
	limits := database.Limits()
	c.Mode = workload.RecordMode(limits, c.Mode)
	if err := c.limit(database, around); err != nil {
		return nil, err
	}
	if writes, most := uint64(c.Batch)*c.pieces()+1, uint64(limits.Writes); most > 0 && writes > most {
		return nil, fmt.Errorf("a batch of %d events of up to %d pieces needs %d writes (with the stream's end), but this database allows %d per transaction: take a smaller batch or larger fragments",
			c.Batch, c.pieces(), writes, most)
	}
	m := &recordModel{
		streams: &db.Collection{Name: table + "_stream", ID: db.Integer, Fields: []db.Field{
			{Name: "place", Type: db.Integer, Additive: true, NonNegative: true}, {Name: "writer", Type: db.Integer},
		}},
		pieces: &db.Collection{Name: table, ID: db.Text, Length: streamDigits + 1 + placeDigits + 1 + pieceDigits, Fresh: true, Group: streamDigits, Fields: []db.Field{
			{Name: "writer", Type: db.Integer}, {Name: "member", Type: db.Integer}, {Name: "body", Type: db.Text},
		}},
	}
	m.advance = &db.Update{Collection: m.streams, Add: []int{endPlace}, Set: []int{endWriter}}
	m.setEnd = &db.Update{Collection: m.streams, Set: []int{endPlace, endWriter}}
	var err error
	m.Records, err = dataset.NewRecords(kind, database, dataset.Contents{
		Collections: []*db.Collection{m.streams, m.pieces}, Things: []*db.Collection{m.streams},
		Put: func(ctx context.Context, s db.RecordSession, _ dataset.Metadata, from, to uint64) error { // streams without an entry
			ends := make([][]db.Value, 0, to-from)
			for stream := from; stream < to; stream++ {
				ends = append(ends, endValues(stream, 0, 0))
			}
			return s.Insert(ctx, m.streams, ends...)
		},
		Rehearse: func(ctx context.Context, s db.RecordSession) error { return m.rehearse(ctx, s, c) },
	})
	return m, err
}

// rehearse carries out a look-up, and appends with all numbers of pieces.
func (m *recordModel) rehearse(ctx context.Context, s db.RecordSession, config *Config) error {
	client := newAppender(config, formula{}, 1, 0, 0)
	c := &recordClient{appender: client, RecordSession: s, model: m}
	err := s.Begin(ctx, false)
	if err == nil {
		_, err = c.look(ctx, 0, 1)
	}
	least, most := uint64(config.Batch)*max((config.Size.Low+config.Fragment-1)/config.Fragment, 1), uint64(config.Batch)*config.pieces()
	for n := least; n <= most && err == nil; n++ {
		if err = s.Begin(ctx, false); err != nil {
			break
		}
		if _, _, err = c.move(ctx, 0, 1); err != nil {
			break
		}
		for piece := range n {
			err = cmp.Or(err, s.Insert(ctx, m.pieces, []db.Value{{Text: appendEntryText(nil, 0, 1, piece)}, {}, {}, {Text: []byte{}}}))
		}
		err = cmp.Or(err, s.Commit(ctx))
	}
	return err
}

// endValues returns the values of a stream's end.
func endValues(stream, place uint64, writer history.ID) []db.Value {
	return []db.Value{{Int: int64(stream)}, {Int: int64(place)}, {Int: int64(writer)}}
}

func (m *recordModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.RecordSession(ctx, a.config.SessionOptions())
	return &recordClient{appender: a, RecordSession: s, model: m}, err
}

// download reads the streams' ends first and then the entries.
func (m *recordModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	return m.With(ctx, func(s db.RecordSession) error {
		ends := map[uint64]uint64{}
		err := s.Scan(ctx, m.streams, db.Value{Null: true}, 0, func(end []db.Value) error {
			if slices.ContainsFunc(end, unwritten) {
				return r.unexpected("an end of stream %d, which no client writes", end[db.ID].Int)
			}
			stream, place := uint64(end[db.ID].Int), uint64(end[endPlace].Int)
			ends[stream] = place
			return r.streamEnd(stream, place, history.ID(end[endWriter].Int), report)
		})
		if err != nil {
			return fmt.Errorf("download the streams' ends: %w", err)
		}
		err = s.Scan(ctx, m.pieces, db.Value{Null: true}, 0, func(values []db.Value) error {
			p, ok := pieceOf(values)
			if !ok {
				return r.unexpected("a piece %q, which no client writes", values[db.ID].Text)
			}
			if p.number == 0 {
				report.Row()
			}
			return r.add(p)
		})
		if err == nil {
			err = r.closeEnds(ends)
		}
		if err != nil {
			return fmt.Errorf("download the events: %w", err)
		}
		return nil
	})
}

// unwritten reports whether no client writes this number.
func unwritten(v db.Value) bool { return v.Null || v.Int < 0 }

// pieceOf reads the values of a piece. It returns false if no client writes such values.
func pieceOf(values []db.Value) (p piece, ok bool) {
	writer, member, body := values[pieceWriter], values[pieceMember], values[pieceBody]
	if unwritten(writer) || unwritten(member) || member.Int > math.MaxUint32 {
		return p, false
	}
	p.writer, p.member, p.void, p.body = history.ID(writer.Int), uint32(member.Int), body.Null, body.Text
	return p, parseEntryKey(values[db.ID].Text, &p) && p.place > 0
}

// recordClient appends on a session of its own. Its buffers grow to what one append needs.
type recordClient struct {
	*appender
	db.RecordSession
	model *recordModel

	id      [1]db.Value
	args    [2]db.Value
	key     []byte
	found   [1]db.Record
	inserts [][]db.Value // the pieces of the append
	values  []byte       // of all its events
	keys    []byte       // the ids of all pieces
}

// Attempt implements load.Client.
func (c *recordClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	return c.try(ctx, tx, c.append)
}

func (c *recordClient) append(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	stream := tx.Ops[0].Object
	if c.before != 0 {
		there, err := c.look(ctx, stream, c.before)
		switch {
		case err != nil:
			return err
		case isAppend(there, tx.ID):
			return cmp.Or(c.Rollback(ctx), load.ErrAlreadyApplied)
		}
	}
	end, there, err := c.move(ctx, stream, tx.ID)
	if err != nil {
		return err
	}
	if !there {
		workload.Decide(tx, noSuchStream)
		return c.Rollback(ctx)
	}
	c.tried = end + 1
	if err := c.Insert(ctx, c.model.pieces, c.pieces(tx.ID, stream)...); err != nil {
		return err
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	done(tx, end)
	c.setEnd(stream, end+uint64(c.config.Batch)+1, tx.ID)
	return nil
}

// move moves the end of a stream by the batch, and returns the end before. Until this append has ended, no other append
// to the stream can commit. there is false if the stream has no end.
func (c *recordClient) move(ctx context.Context, stream uint64, writer history.ID) (end uint64, there bool, err error) {
	if err := c.know(ctx, stream); err != nil {
		return 0, false, err
	}
	c.args = [...]db.Value{{Int: int64(c.config.Batch)}, {Int: int64(writer)}}
	before, err := c.FindAndUpdate(ctx, c.model.advance, db.Value{Int: int64(stream)}, c.args[:])
	if err != nil || !before.Found {
		return 0, false, err
	}
	end, err = c.endOf(ctx, stream, before.Values)
	return end, true, err
}

// know reads the end of a stream first if the database defers changes, unless the client can assume the end.
func (c *recordClient) know(ctx context.Context, stream uint64) error {
	assumer, ok := c.RecordSession.(db.Assumer)
	if !ok {
		return nil
	}
	if end, last := c.end(stream); end != 0 && c.before == 0 {
		assumer.Assume(c.model.streams, endValues(stream, end-1, last))
		return nil
	}
	c.id[0] = db.Value{Int: int64(stream)}
	return c.Find(ctx, c.model.streams, c.id[:], c.found[:])
}

// endOf reads a stream's end. After an error the transaction has ended.
func (c *recordClient) endOf(ctx context.Context, stream uint64, values []db.Value) (end uint64, err error) {
	if unwritten(values[endPlace]) {
		err = db.Fatalf(fmt.Sprintf("read the end of stream %d", stream), "its place is missing or negative, which no append writes")
		return 0, cmp.Or(c.Rollback(ctx), err)
	}
	return uint64(values[endPlace].Int), nil
}

// pieces returns the records of an append from the tried place on. They are valid until the next call.
func (c *recordClient) pieces(id history.ID, stream uint64) [][]db.Value {
	c.values, c.keys = c.values[:0], c.keys[:0]
	n := 0
	for member := range uint32(c.config.Batch) {
		// If the buffers of the values or the ids grow later, a piece keeps its part of the old buffer.
		from := len(c.values)
		c.values = append(c.values, c.make(id, member)...)
		number := uint64(0)
		for body := range slices.Chunk(c.values[from:], int(c.config.Fragment)) {
			if n == len(c.inserts) {
				c.inserts = append(c.inserts, make([]db.Value, pieceWidth))
			}
			key := len(c.keys)
			c.keys = appendEntryText(c.keys, stream, c.tried+uint64(member), number)
			p := c.inserts[n]
			p[db.ID].Text, p[pieceWriter].Int, p[pieceMember].Int, p[pieceBody].Text = c.keys[key:], int64(id), int64(member), body
			n++
			number++
		}
	}
	return c.inserts[:n]
}

// look reads the first piece of the entry at a place of a stream.
func (c *recordClient) look(ctx context.Context, stream, place uint64) (there db.Record, err error) {
	c.key = appendEntryText(c.key[:0], stream, place, 0)
	c.id[0] = db.Value{Text: c.key}
	err = c.Find(ctx, c.model.pieces, c.id[:], c.found[:])
	return c.found[0], err
}

// isAppend reports whether the piece at a place is part of an event of a transaction.
func isAppend(there db.Record, id history.ID) bool {
	if !there.Found {
		return false
	}
	p, ok := pieceOf(there.Values)
	return ok && p.writer == id && !p.void
}

// ResolveUnknown implements load.Client, as the package's comment says. The tombstone always writes the stream's end,
// which every try of the append has written: only one of the two can commit. A result counts only after the commit:
// until then a server that is no longer the primary could have answered.
func (c *recordClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if c.unsent(tx) {
		return nil
	}
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	there, err := c.look(ctx, tx.Ops[0].Object, c.tried)
	if err != nil {
		return err
	}
	applied := isAppend(there, tx.ID)
	if !there.Found {
		if err := c.close(ctx, tx); err != nil {
			if db.ConstraintOf(err) == db.UniqueKey { // the next look-up finds it
				err = errTaken
			}
			return err
		}
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Aborted
	if applied {
		done(tx, c.tried-1)
	}
	return nil
}

// close writes a tombstone at the place that was tried, and the stream's end.
func (c *recordClient) close(ctx context.Context, tx *history.Transaction) error {
	stream := tx.Ops[0].Object
	id := []db.Value{{Int: int64(stream)}}
	if err := c.Find(ctx, c.model.streams, id, c.found[:]); err != nil {
		return err
	}
	tombstone := []db.Value{c.id[0], {Int: int64(tx.ID)}, {Int: 0}, {Null: true}}
	if !c.found[0].Found {
		if err := c.Insert(ctx, c.model.streams, endValues(stream, c.tried, tx.ID)); err != nil {
			return err
		}
		return c.Insert(ctx, c.model.pieces, tombstone)
	}
	end, err := c.endOf(ctx, stream, c.found[0].Values)
	if err != nil {
		return err
	}
	last := tx.ID
	if end >= c.tried { // an entry is behind a place without an entry: the checks report it
		last = history.ID(c.found[0].Values[endWriter].Int)
	}
	c.args = [...]db.Value{{Int: int64(max(end, c.tried))}, {Int: int64(last)}}
	if _, err := c.Update(ctx, c.model.setEnd, id, c.args[:]); err != nil {
		return err
	}
	return c.Insert(ctx, c.model.pieces, tombstone)
}

// The id of a piece is the stream's number, a slash, the place, a slash and the piece's number. The numbers are in
// hexadecimal digits, so that ids have the order of the numbers.
const (
	streamDigits = 5
	placeDigits  = 14
	pieceDigits  = 6
)

// around is an upper estimate of the bytes of a piece in a commit without its part of the value of an event. These are
// its key, its other fields and the store's own framing.
const around = 192

// appendEntryText appends the id of a piece.
func appendEntryText(b []byte, stream, place, piece uint64) []byte {
	b = workload.Hex.Append(b, stream, streamDigits)
	b = workload.Hex.Append(append(b, '/'), place, placeDigits)
	return workload.Hex.Append(append(b, '/'), piece, pieceDigits)
}

// parseEntryKey reads the id of a piece into p.
func parseEntryKey(b []byte, p *piece) bool {
	const place, number = streamDigits + 1, streamDigits + 1 + placeDigits + 1
	if len(b) != number+pieceDigits || b[streamDigits] != '/' || b[number-1] != '/' {
		return false
	}
	var ok [3]bool
	p.stream, ok[0] = workload.Hex.Parse(b[:streamDigits])
	p.place, ok[1] = workload.Hex.Parse(b[place : place+placeDigits])
	p.number, ok[2] = workload.Hex.Parse(b[number:])
	return ok == [3]bool{true, true, true}
}
