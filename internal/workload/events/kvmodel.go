package events

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kvModel is the log on an ordered key-value store.
type kvModel struct {
	*dataset.KV
	config *Config
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (*kvModel, error) {
	if err := c.limit(database, around); err != nil {
		return nil, err
	}
	if writes, most := uint64(c.Batch)*c.pieces()+1, uint64(database.Limits().Writes); writes > most {
		return nil, fmt.Errorf("a batch of %d events of up to %d pieces makes commits of %d writes, the stream's end included, and a transaction of this database has at most %d: take a smaller batch or larger fragments",
			c.Batch, c.pieces(), writes, most)
	}
	store, err := dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{tailPrefix, entryPrefix}, Spaces: tailSpace(), Put: putStreams,
	})
	return &kvModel{store, c}, err
}

// putStreams sets the ends of streams that have no entry yet.
func putStreams(s db.KVSession, _ dataset.Metadata, from, to uint64) {
	var key [tailKeyLength]byte
	var value [tailValue]byte
	for stream := from; stream < to; stream++ {
		s.Set(appendTailKey(key[:0], stream), value[:])
	}
}

func (m *kvModel) client(ctx context.Context, a *appender) (load.Client, error) {
	s, err := m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	return newKVClient(a, s), nil
}

// download reads the entries first and the streams' ends then.
func (m *kvModel) download(ctx context.Context, r *reader, report *dataset.Progress) error {
	return m.With(ctx, func(s db.KVSession) error {
		err := dataset.Scan(ctx, s, tailPrefix, func(_, value []byte) error {
			if place, _, ok := parseTail(value); ok {
				report.Total += place
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("count the events: %w", err)
		}
		entries := uint64(0)
		err = dataset.Scan(ctx, s, entryPrefix, func(key, value []byte) error {
			p, ok := parsePiece(value)
			if !ok || !parseEntryKey(key, &p) || p.place == 0 {
				return r.unexpected("a key %q with %d bytes, which nobody writes", entryPrefix+string(key), len(value))
			}
			if p.number == 0 {
				if entries++; entries%progressRows == 0 {
					report.Done(min(entries, report.Total))
				}
			}
			return r.add(p)
		})
		if err != nil {
			return fmt.Errorf("download the events: %w", err)
		}
		if err := r.finish(); err != nil {
			return err
		}
		r.agrees = true
		err = dataset.Scan(ctx, s, tailPrefix, func(key, value []byte) error {
			stream, known := workload.Hex.Parse(key)
			place, writer, ok := parseTail(value)
			if !known || len(key) != streamDigits || !ok {
				return r.unexpected("a key %q with %d bytes, which nobody writes", tailPrefix+string(key), len(value))
			}
			return r.tail(stream, place, writer)
		})
		if err != nil {
			return fmt.Errorf("download the streams' ends: %w", err)
		}
		report.Done(report.Total)
		return nil
	})
}
