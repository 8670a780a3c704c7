package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

type kvModel struct{ *dataset.KV }

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (model, error) {
	c.Mode = cmp.Or(c.Mode, workload.Pipelined)
	if c.Mode == workload.Procedure {
		return nil, errNoProcedure
	}
	if err := c.limit(database, around); err != nil {
		return nil, err
	}
	if writes, most := uint64(c.Batch)*c.pieces()+1, uint64(database.Limits().Writes); writes > most {
		return nil, fmt.Errorf("a batch of %d events of up to %d pieces makes commits of %d writes, the stream's end included, and a transaction of this database has at most %d: take a smaller batch or larger fragments",
			c.Batch, c.pieces(), writes, most)
	}
	store, err := dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{tailPrefix, entryPrefix},
		Spaces: []db.Keyspace{{Prefix: []byte(tailPrefix), Columns: []db.Column{
			{Name: "place", Offset: placeAt, Additive: true, NonNegative: true}, {Name: "writer", Offset: writerAt},
		}}},
		Put: func(s db.KVSession, _ dataset.Metadata, from, to uint64) { // the ends of streams without an entry
			key, value := []byte(nil), make([]byte, tailValue)
			for stream := from; stream < to; stream++ {
				key = appendTailKey(key[:0], stream)
				s.Set(key, value)
			}
		},
	})
	return &kvModel{store}, err
}

func (m *kvModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.KVSession(ctx, workload.SessionOptions(a.config.Isolation, a.config.Mode))
	return &kvClient{appender: a, KVSession: s}, err
}

// download reads the streams' ends first and the entries then.
func (m *kvModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	return m.With(ctx, func(s db.KVSession) error {
		ends := map[uint64]uint64{}
		err := dataset.Scan(ctx, s, tailPrefix, func(key, value []byte) error {
			stream, known := workload.Hex.Parse(key)
			place, writer, ok := parseTail(value)
			if !known || len(key) != streamDigits || !ok {
				return r.unexpected("a key %q with %d bytes, which no client writes", tailPrefix+string(key), len(value))
			}
			ends[stream] = place
			return r.streamEnd(stream, place, writer, report)
		})
		if err != nil {
			return fmt.Errorf("download the streams' ends: %w", err)
		}
		err = dataset.Scan(ctx, s, entryPrefix, func(key, value []byte) error {
			p, ok := parsePiece(value)
			if !ok || !parseEntryKey(key, &p) || p.place == 0 {
				return r.unexpected("a key %q with %d bytes, which no client writes", entryPrefix+string(key), len(value))
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

// kvClient appends on a session of its own. Its buffers grow to what one append needs.
type kvClient struct {
	*appender
	db.KVSession

	tail, entry []byte      // keys: of the stream's end, of a piece that is read or written
	keys        [2][]byte   // of one Read
	found       [2]db.Entry // the stream's end, and what is at the place that was read
	end         []byte      // the value of the stream's end
	part        []byte      // the value of a piece
}

// Attempt implements load.Client.
func (c *kvClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.begin(tx)
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	op := &tx.Ops[0]
	end, err := c.look(ctx, op.Object, c.before)
	if err != nil {
		return err
	}
	switch {
	case isEvent(c.found[1], tx.ID):
		c.Rollback()
		return load.ErrAlreadyApplied
	case !c.found[0].Found:
		c.Rollback()
		workload.Decide(tx, noSuchStream)
		return nil
	}
	c.tried = end + 1
	for member := range uint32(c.config.Batch) {
		n := uint64(0)
		for body := range slices.Chunk(c.make(tx.ID, member), int(c.config.Fragment)) {
			c.entry = appendEntryKey(c.entry[:0], op.Object, c.tried+uint64(member), n)
			c.part = append(appendPiece(c.part[:0], kindEvent, tx.ID, member), body...)
			c.Set(c.entry, c.part)
			n++
		}
	}
	c.setEnd(end+uint64(c.config.Batch), tx.ID)
	if err := c.Commit(ctx); err != nil {
		return err
	}
	done(tx, end)
	return nil
}

// isEvent says that an entry is an event of a transaction.
func isEvent(e db.Entry, id history.ID) bool {
	p, ok := parsePiece(e.Value)
	return e.Found && ok && p.writer == id && !p.void
}

// look reads the end of a stream, and what is at one of its places; 0 is none. With
// an error the transaction is given up.
func (c *kvClient) look(ctx context.Context, stream, place uint64) (end uint64, err error) {
	c.tail = appendTailKey(c.tail[:0], stream)
	c.found[1] = db.Entry{}
	keys := append(c.keys[:0], c.tail)
	if place != 0 {
		c.entry = appendEntryKey(c.entry[:0], stream, place, 0)
		keys = append(keys, c.entry)
	}
	if err := c.Read(ctx, keys, c.found[:len(keys)]); err != nil || !c.found[0].Found {
		return 0, err
	}
	end, _, ok := parseTail(c.found[0].Value)
	if !ok {
		c.Rollback()
		return 0, db.Fatalf(fmt.Sprintf("read %s", c.tail), "its value has %d bytes or is negative, which no append writes", len(c.found[0].Value))
	}
	return end, nil
}

func (c *kvClient) setEnd(place uint64, writer history.ID) {
	c.end = appendTail(c.end[:0], place, writer)
	c.Set(c.tail, c.end)
}

// ResolveUnknown implements load.Client, as the package's comment says. The tombstone always
// writes the stream's end, which every try of the append has read: only one of the
// two can commit.
func (c *kvClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if c.unsent(tx) {
		return nil
	}
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	stream := tx.Ops[0].Object
	end, err := c.look(ctx, stream, c.tried)
	if err != nil {
		return err
	}
	if there := c.found[1]; there.Found {
		tx.Outcome = history.Aborted
		if isEvent(there, tx.ID) {
			done(tx, c.tried-1)
		}
		c.Rollback()
		return nil
	}
	c.part = appendPiece(c.part[:0], kindVoid, tx.ID, 0)
	c.Set(c.entry, c.part)
	last := tx.ID
	if end >= c.tried { // somebody is behind a place that nobody has: the checks report it
		_, last, _ = parseTail(c.found[0].Value)
	}
	c.setEnd(max(end, c.tried), last)
	if err := c.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Aborted
	return nil
}
