package dataset

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"stroppy/internal/db"
)

// Contents are a workload's collections.
type Contents struct {
	// Things are the collections of the things, which the load makes, and Others those that
	// it makes empty.
	Things, Others []*db.Collection
	// Batch is how many things one transaction of the load makes; 0: as many as there may be.
	Batch int
	// Put inserts the things from ≤ n < to.
	Put func(ctx context.Context, s db.RecordSession, m Metadata, from, to uint64) error
}

// Records is a Store in a database of records. The metadata are a record a fact.
type Records struct {
	Database db.Records
	kind     Kind
	contents Contents

	facts  *db.Collection
	change *db.Update // gives a fact its value
}

// NewRecords returns the store of a kind.
func NewRecords(kind Kind, database db.Records, contents Contents) *Records {
	d := &Records{Database: database, kind: kind, contents: contents}
	d.facts = &db.Collection{Name: kind.Table, ID: db.Text, Fields: []db.Field{{Name: "value", Type: db.Text}}}
	d.change = &db.Update{Collection: d.facts, Set: []int{1}}
	return d
}

func text(s string) db.Value { return db.Value{Text: []byte(s)} }

// With lends a session for something that is no client's transaction.
func (d *Records) With(ctx context.Context, use func(s db.RecordSession) error) error {
	return with(ctx, d.Database.RecordSession, use)
}

// Change carries out one transaction as write does.
func (d *Records) Change(ctx context.Context, change func(s db.RecordSession) error) error {
	return d.With(ctx, func(s db.RecordSession) error {
		return write(ctx, s, func() error { return change(s) })
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

// all are the collections of the workload's data.
func (d *Records) all() []*db.Collection {
	return slices.Concat(d.contents.Things, d.contents.Others)
}

// Foreign implements Store. A collection of metadata without any is what a load leaves that
// ended before it had written them.
func (d *Records) Foreign(ctx context.Context) (what string, err error) {
	there, err := d.Database.Collections(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range d.all() {
		if slices.Contains(there, c.Name) {
			return "this database has a collection " + c.Name, nil
		}
	}
	if !slices.Contains(there, d.facts.Name) {
		return "", nil
	}
	err = d.With(ctx, func(s db.RecordSession) error {
		return s.Scan(ctx, d.facts, db.Value{Null: true}, 1, func([]db.Value) error {
			what = "this database has a collection " + d.facts.Name
			return nil
		})
	})
	return what, err
}

// Begin implements Store. It marks the data as loading first, so that a crash at
// any later time leaves data that say so.
func (d *Records) Begin(ctx context.Context, m Metadata) error {
	if err := d.mark(ctx, m); err != nil {
		return err
	}
	for _, c := range d.all() {
		if err := d.Database.Drop(ctx, c); err != nil {
			return err
		}
	}
	for _, c := range d.all() {
		if err := d.Database.Create(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// mark writes the metadata of a load that starts in place of any others, all at once: at no
// time are there data without any.
func (d *Records) mark(ctx context.Context, m Metadata) error {
	if err := d.Database.Create(ctx, d.facts); err != nil {
		return err
	}
	facts := d.kind.starting(m)
	for i := range loaders {
		facts = append(facts, [2]string{partName(i), "0"})
	}
	return d.Change(ctx, func(s db.RecordSession) error {
		for _, fact := range facts {
			id, value := []db.Value{text(fact[0])}, []db.Value{text(fact[1])}
			found, err := s.Update(ctx, d.change, id, value)
			if err == nil && found == 0 {
				err = s.Insert(ctx, d.facts, append(id, value...))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fact reads one fact in the open transaction; empty if it is not there.
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

// Census implements Store. Each collection is a part.
func (d *Records) Census(ctx context.Context, _ Metadata) (c Census, err error) {
	err = d.With(ctx, func(s db.RecordSession) error {
		c, err = censusOf(ctx, d.all(), func(ctx context.Context, of *db.Collection) (Part, error) {
			columns := []column{{"id", of.ID}}
			for _, f := range of.Fields {
				columns = append(columns, column{f.Name, f.Type})
			}
			var list []db.Type
			for _, f := range of.Items {
				list = append(list, f.Type)
			}
			t := newTally("the collection "+of.Name, "records", columns, list...)
			return t.close(s.Scan(ctx, of, db.Value{Null: true}, 0, t.row))
		})
		return err
	})
	return c, err
}

// Fill implements Store. It loads all parts at once.
func (d *Records) Fill(ctx context.Context, m Metadata, progress func(done uint64)) error {
	return fillParts(ctx, m, progress, d.fillPart)
}

// fillPart makes the things of one part that are not there yet, in transactions
// each of which also writes how far the part has come.
func (d *Records) fillPart(ctx context.Context, m Metadata, i int, made func(rows uint64)) error {
	from, to := part(m.Size, i)
	batch := uint64(maxBatch)
	if d.contents.Batch > 0 {
		batch = uint64(min(maxBatch, d.contents.Batch))
	}
	return d.With(ctx, func(s db.RecordSession) error {
		for at := from + m.parts[i]; at < to; {
			next := min(at+batch, to)
			err := write(ctx, s, func() error { return d.fillBatch(ctx, s, m, i, at, next) })
			if err != nil {
				return err
			}
			made(next - at)
			at = next
		}
		return nil
	})
}

// fillBatch makes things, unless an earlier try has made them whose answer was lost.
func (d *Records) fillBatch(ctx context.Context, s db.RecordSession, m Metadata, i int, at, next uint64) error {
	from, _ := part(m.Size, i)
	reached := strconv.FormatUint(next-from, 10)
	done, err := d.fact(ctx, s, partName(i))
	if err != nil || done == reached {
		return err
	}
	if err := d.contents.Put(ctx, s, m, at, next); err != nil {
		return err
	}
	_, err = s.Update(ctx, d.change, []db.Value{text(partName(i))}, []db.Value{text(reached)})
	return err
}

// Set implements Store. The metadata of another load are in a collection that was made
// anew, so that what was read of this one is there as long as the transaction is.
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

// Prepare implements Store.
func (d *Records) Prepare(context.Context, uint64) error { return nil }
