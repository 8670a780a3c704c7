package dataset

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/db"
)

const (
	// loaders is the number of sessions that load at once, each session a part of its own. It is fixed, so that an
	// interrupted load is resumed with the same parts.
	loaders = 8
	// maxBatch bounds the things that one transaction of the load makes. It holds even if the store accepts more.
	maxBatch = 1000
)

// Contents are a workload's collections.
type Contents struct {
	// Collections are all collections. Their order is the order of the census, so it never changes.
	Collections []*db.Collection
	// Things are the collections of the things, which the load fills; the others begin empty.
	Things []*db.Collection
	// Batch is the number of things in one transaction of the load; 0: as many as the store takes.
	Batch int
	// Put inserts the things from ≤ n < to.
	Put func(ctx context.Context, s db.RecordSession, m Metadata, from, to uint64) error
	// Rehearse carries out the transactions that clients use often; nil: none.
	Rehearse func(ctx context.Context, s db.RecordSession) error
}

// Records is a Store in a database of records. The metadata are one record for each fact.
type Records struct {
	Database db.Records
	kind     Kind
	contents Contents

	facts  *db.Collection
	change *db.Update // gives a fact its value
}

// NewRecords returns the store of a kind. It declares the collections to a database that must
// know them.
func NewRecords(kind Kind, database db.Records, contents Contents) (*Records, error) {
	d := &Records{Database: database, kind: kind, contents: contents}
	d.facts = &db.Collection{Name: kind.Table, ID: db.Text, Fields: []db.Field{{Name: "value", Type: db.Text}}}
	d.change = &db.Update{Collection: d.facts, Set: []int{1}}
	if declarer, ok := database.(db.Declarer); ok {
		return d, declarer.Declare(contents.Collections...)
	}
	return d, nil
}

func text(s string) db.Value { return db.Value{Text: []byte(s)} }

// With calls use with a session, for work outside the transactions of clients.
func (d *Records) With(ctx context.Context, use func(s db.RecordSession) error) error {
	return with(ctx, d.Database.RecordSession, use)
}

// Change carries out one transaction, and repeats it after a conflict.
func (d *Records) Change(ctx context.Context, change func(s db.RecordSession) error) error {
	return d.With(ctx, func(s db.RecordSession) error {
		return db.Repeat(ctx, s, errChanged, func() error { return change(s) })
	})
}

// Read implements Store.
func (d *Records) Read(ctx context.Context) (Metadata, error) {
	values := map[string]string{}
	err := d.With(ctx, func(s db.RecordSession) error {
		return s.Scan(ctx, d.facts, db.Value{Null: true}, 0, func(fact []db.Value) error {
			values[string(fact[db.ID].Text)] = string(fact[1].Text)
			return nil
		})
	})
	if err != nil {
		return Metadata{}, err
	}
	return d.kind.parseParts(values), nil
}

// Foreign implements Store. An empty collection of metadata comes from a load that ended before it wrote them.
func (d *Records) Foreign(ctx context.Context) (what string, err error) {
	for _, c := range d.contents.Collections {
		if there, err := d.Database.Exists(ctx, c); there || err != nil {
			return "this database has a collection " + c.Name, err
		}
	}
	if there, err := d.Database.Exists(ctx, d.facts); !there || err != nil {
		return "", err
	}
	err = d.With(ctx, func(s db.RecordSession) error {
		return s.Scan(ctx, d.facts, db.Value{Null: true}, 1, func([]db.Value) error {
			what = "this database has a collection " + d.facts.Name
			return nil
		})
	})
	return what, err
}

// Begin implements Store. It marks the data as loading first, so that the mark stays if the load crashes at any later
// time. If the database drops all collections at once, the mark is made last: until then there are no records.
func (d *Records) Begin(ctx context.Context, m Metadata) error {
	dropped, last := d.contents.Collections, d.Database.Limits().Simple
	if last {
		dropped = append(slices.Clip(dropped), d.facts)
	} else if err := d.mark(ctx, m); err != nil {
		return err
	}
	for _, c := range dropped {
		if err := d.Database.Drop(ctx, c); err != nil {
			return err
		}
	}
	for _, c := range d.contents.Collections {
		if err := d.Database.Create(ctx, c); err != nil {
			return err
		}
	}
	if last {
		return d.mark(ctx, m)
	}
	return nil
}

// mark writes the metadata of a load that starts in place of any others. It writes all of them at once, so that there
// are never data without metadata.
func (d *Records) mark(ctx context.Context, m Metadata) error {
	if err := d.Database.Create(ctx, d.facts); err != nil {
		return err
	}
	facts := d.kind.starting(m)
	for i := range loaders {
		facts = append(facts, [2]string{partName(i), "0"})
	}
	ids, found := make([]db.Value, len(facts)), make([]db.Record, len(facts))
	for i, fact := range facts {
		ids[i] = text(fact[0])
	}
	return d.Change(ctx, func(s db.RecordSession) error {
		if err := s.Find(ctx, d.facts, ids, found); err != nil {
			return err
		}
		for i, fact := range facts {
			var err error
			if value := text(fact[1]); found[i].Found {
				_, err = s.Update(ctx, d.change, ids[i:i+1], []db.Value{value})
			} else {
				err = s.Insert(ctx, d.facts, []db.Value{ids[i], value})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fact reads one fact in the open transaction. It returns an empty text if the fact is not there.
func (d *Records) fact(ctx context.Context, s db.RecordSession, name string) (string, error) {
	var found [1]db.Record
	if err := s.Find(ctx, d.facts, []db.Value{text(name)}, found[:]); err != nil || !found[0].Found {
		return "", err
	}
	return string(found[0].Values[1].Text), nil
}

// Rows implements Store.
func (d *Records) Rows(ctx context.Context) (rows uint64, err error) {
	err = d.With(ctx, func(s db.RecordSession) error {
		for _, c := range d.contents.Things {
			err := s.Scan(ctx, c, db.Value{Null: true}, 0, func([]db.Value) error {
				rows++
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return rows, err
}

// Census implements Store. Each collection is a part. If a database gives the records in no order, a collection can be
// read only as a whole. A read beside writers may leave locks there. So its large collections are not read. During a
// run no collection is read, and the census has no parts.
func (d *Records) Census(ctx context.Context, m Metadata) (c Census, err error) {
	if d.Database.Limits().Simple && (m.Size > censusRows || m.seal.ended != m.Run) {
		return nil, nil
	}
	err = d.With(ctx, func(s db.RecordSession) error {
		c, err = censusOf(ctx, d.contents.Collections, func(ctx context.Context, of *db.Collection) (Part, error) {
			columns := append([]db.Field{{Name: "id", Type: of.ID}}, of.Fields...)
			t := newTally("the collection "+of.Name, "records", columns, of.Items)
			p, err := t.close(s.Scan(ctx, of, db.Value{Null: true}, 0, t.row))
			if !p.Whole && d.Database.Limits().Simple { // the rows read may be any of them
				p.Digest, p.Sums = 0, nil
			}
			return p, err
		})
		return err
	})
	return c, err
}

// Fill implements Store. It loads all parts at once.
func (d *Records) Fill(ctx context.Context, m Metadata, progress func(done uint64)) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	done := m.Rows
	for i := range loaders {
		group.Go(func() error {
			return d.fillPart(ctx, m, i, func(rows uint64) {
				mu.Lock()
				defer mu.Unlock()
				done += rows
				progress(done)
			})
		})
	}
	return group.Wait()
}

// fillPart makes the missing things of one part. Each transaction also writes the progress of the part.
func (d *Records) fillPart(ctx context.Context, m Metadata, i int, made func(rows uint64)) (err error) {
	from, to := part(m.Size, i)
	limits := d.Database.Limits()
	batch := uint64(min(maxBatch, cmp.Or(d.contents.Batch, maxBatch)))
	if !limits.Deferred {
		batch = min(batch, uint64(cmp.Or(limits.Writes, maxBatch+1)-1))
	}
	s, err := d.Database.RecordSession(ctx, db.SessionOptions{Mode: db.Pipelined, Loading: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.Close()) }()
	for at := from + m.parts[i]; at < to; {
		if ctx.Err() != nil { // some stores do not check the context, for example if they answer at once
			return context.Cause(ctx)
		}
		next := min(at+batch, to)
		err := db.Repeat(ctx, s, errChanged, func() error { return d.fillBatch(ctx, s, m, i, at, next) })
		if err != nil {
			return err
		}
		made(next - at)
		at = next
	}
	return nil
}

// fillBatch makes things, unless an earlier try has made them and its answer was lost. An optimistic store makes them
// again, because it writes each record whether it exists or not. A deferred store inserts each thing that is not there.
func (d *Records) fillBatch(ctx context.Context, s db.RecordSession, m Metadata, i int, at, next uint64) error {
	from, _ := part(m.Size, i)
	reached := strconv.FormatUint(next-from, 10)
	if l := d.Database.Limits(); !l.Optimistic && !l.Deferred {
		if done, err := d.fact(ctx, s, partName(i)); err != nil || done == reached {
			return err
		}
	}
	if err := d.contents.Put(ctx, s, m, at, next); err != nil {
		return err
	}
	_, err := s.Update(ctx, d.change, []db.Value{text(partName(i))}, []db.Value{text(reached)})
	return err
}

// Set implements Store. The metadata of another load are in a new collection. So the facts that were read of this load
// stay there until the transaction ends.
func (d *Records) Set(ctx context.Context, name, value, guard, was string) error {
	return d.Change(ctx, func(s db.RecordSession) error {
		found, err := d.fact(ctx, s, guard)
		if err != nil {
			return err
		}
		if found != was {
			return cmp.Or(s.Rollback(ctx), error(errChanged))
		}
		_, err = s.Update(ctx, d.change, []db.Value{text(name)}, []db.Value{text(value)})
		return err
	})
}

// Prepare implements Store. It rehearses the transactions if the database prepares for them.
func (d *Records) Prepare(ctx context.Context, _ uint64) error {
	r, ok := d.Database.(db.Rehearser)
	if !ok || d.contents.Rehearse == nil {
		return nil
	}
	return r.Rehearse(ctx, func(s db.RecordSession) error { return d.contents.Rehearse(ctx, s) })
}

// partName is the name under which part i of the load keeps the number of its finished things.
func partName(i int) string { return nameRows + "/" + strconv.Itoa(i) }

// part returns the things of part i: from ≤ n < to.
func part(size uint64, i int) (from, to uint64) {
	each, more := size/loaders, size%loaders
	start := func(i uint64) uint64 { return i*each + min(i, more) }
	return start(uint64(i)), start(uint64(i) + 1)
}

// with calls use with a session of any data model.
func with[S interface{ Close() error }](
	ctx context.Context, open func(context.Context, db.SessionOptions) (S, error), use func(s S) error,
) error {
	s, err := open(ctx, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		return err
	}
	return cmp.Or(use(s), s.Close())
}

// parseParts reads the metadata of a load in parts.
func (k *Kind) parseParts(values map[string]string) Metadata {
	var rows uint64
	var parts [loaders]uint64
	for i := range parts {
		parts[i], _ = strconv.ParseUint(values[partName(i)], 10, 64) // 0 if it is not a number: the things are counted
		rows += parts[i]
		delete(values, partName(i))
	}
	values[nameRows] = strconv.FormatUint(rows, 10)
	m := k.parse(values)
	m.parts = parts
	return m
}
