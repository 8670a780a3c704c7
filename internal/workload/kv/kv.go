// Package kv is the key-value workload: records of a key and a value. A transaction reads one, writes one, inserts
// one, reads and writes one, or reads several in order.
//
// Most mixes come from YCSB (Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010). The default is
// a public profile of nine reads to one write.
//
// Every value names its writer. So each read that a client was answered can be compared with everything that was
// written.
package kv

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "kv"

// Workload is the key-value workload on one open database.
type Workload struct {
	*dataset.Set
	config Config
	model  model

	formula *formula // of what Attach found
}

// The kinds of transactions.
const (
	put    = (iota + 1) * history.Numbered // writes a record, whatever was there
	insert                                 // writes a record that was not there
	modify                                 // reads a record and writes it

	get  = 1*history.Numbered | history.ReadOnly // reads a record
	scan = 2*history.Numbered | history.ReadOnly // reads records in the order of their keys
)

// kinds holds the kinds of all transactions, in the order of their shares.
var kinds = [...]history.Declared{
	get.Named("read"), put.Named("update"), insert.Named("insert"), scan.Named("scan"), modify.Named("read-modify-write"),
}

// noSuchRecord is the reason of a rejected transaction.
const noSuchRecord history.Reason = 1

// model is the workload written for one data model.
type model interface {
	dataset.Store
	// session opens a client's session. Those that share a connection are opened one
	// after the other.
	session(ctx context.Context, c *client) (session, error)
	// endState hands over all records.
	endState(ctx context.Context, record func(key, value []byte) error) error
}

var models = dataset.Models[model, Config]{SQL: newSQLModel, Direct: newKVModel, Records: newRecordModel}

// New binds the workload to a database of any model that it is written for.
func New(database db.Database, c Config) (*Workload, error) {
	if err := c.check(database.Limits()); err != nil {
		return nil, err
	}
	w := &Workload{config: c}
	var err error
	w.model, w.Set, err = dataset.Bind(kind, database, &w.config, models, dataset.Expected{
		Session: &w.config.Session, Clients: c.Clients(), Seed: c.Seed, Size: c.Records,
		Facts:   func(context.Context) (map[string]string, error) { return factsOf(c.shape()), nil },
		Rule:    rule,
		Take:    w.take,
		Client:  w.client,
		Another: func(d db.Database) (dataset.Bound, error) { return New(d, w.config) },
	})
	return w, err
}

// Header returns what the checks need in the history; valid after Attach.
func (w *Workload) Header() history.Header {
	return w.Complete(history.Header{
		Kinds:   kinds[:],
		Reasons: []history.Declared{noSuchRecord.Named("no such record")},
		Object:  "record",
		Unit:    "bytes",
		Keys:    w.keys(),
	})
}

// keys returns the facts of the load and the mode.
func (w *Workload) keys() map[string]string {
	keys := factsOf(w.formula.shape)
	keys["mode"] = cmp.Or(w.config.Mode, workload.Pipelined)
	return keys
}

func (w *Workload) client(ctx context.Context, i int) (load.Client, error) {
	c := &client{
		chooser: newChooser(&w.config, w.formula, w.Run(), uint64(i)),
		key:     w.formula.newKey(), scratch: w.formula.newKey(),
	}
	var err error
	c.session, err = w.model.session(ctx, c)
	return c, err
}

// EndState downloads all records, what they say of themselves in place of their
// values, as dataset.Download does: a record agrees with itself.
func (w *Workload) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, w.Set, end.Restart, func() (none struct{}, agrees bool, err error) {
		report := dataset.Progress{Report: progress, Total: w.Size()}
		scratch := w.formula.newKey()
		err = w.model.endState(ctx, func(key, value []byte) error {
			report.Row()
			n, ok := w.formula.number(key, scratch)
			if !ok {
				return end.Unexpected(fmt.Sprintf("a key %q with a value of %d bytes, which neither the load nor a transaction makes", key, len(value)))
			}
			writer, state := w.formula.parse(value, n)
			return end.Object(history.Object{N: n, Value: int64(len(value)), State: state, Writer: writer})
		})
		if err != nil {
			err = fmt.Errorf("download the records: %w", err)
		}
		return none, true, err
	})
}

// kind describes the records to a database.
var kind = dataset.Kind{
	Workload: Name, Noun: "record set", Things: "records", Make: "stroppy run kv", Schema: 1,
	Table: "stroppy_kv_meta",
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// factsOf returns what the metadata of records of this shape keep, in bytes.
func factsOf(s shape) map[string]string {
	return map[string]string{"key_size": decimal(s.key), "value_low": decimal(s.low), "value_high": decimal(s.high)}
}

// shapeOf is the inverse of factsOf.
func shapeOf(facts map[string]string) (s shape, err error) {
	number := func(name string, least, most uint64) uint64 {
		n, failed := strconv.ParseUint(facts[name], 10, 64)
		if (failed != nil || n < least || n > most) && err == nil {
			err = kind.Altered(name, facts[name])
		}
		return n
	}
	s.key = number("key_size", leastKey, mostKey)
	s.low = number("value_low", leastValue, mostValue)
	s.high = number("value_high", max(s.low, leastValue), mostValue)
	return s, err
}

// longest returns the bytes of the longest record of data, its key included.
func longest(m *dataset.Metadata) int {
	s, err := shapeOf(m.Facts)
	if err != nil {
		return mostKey + mostValue
	}
	return int(s.key + s.high)
}

// rule returns what contradicts the records that were loaded: no transaction removes one.
func rule(m *dataset.Metadata, c dataset.Census) string {
	if records := &c[0]; records.Whole && records.Rows < m.Size {
		return fmt.Sprintf("%s has %s records and the load made %s", records.Name, check.Group(records.Rows), check.Group(m.Size))
	}
	return ""
}

func (c *Config) shape() shape { return shape{c.KeySize, c.ValueLow, c.ValueHigh} }

// take adopts the records that were found, if they fit the configuration.
func (w *Workload) take(m *dataset.Metadata) error {
	s, err := shapeOf(m.Facts)
	c := &w.config
	switch {
	case err != nil:
		return err
	case c.KeySize != 0 && c.KeySize != s.key:
		return dataset.MismatchErrorf("the %s in this database has keys of %d bytes, and %d are asked for: leave the size out, or run `%s`", kind.Noun, s.key, c.KeySize, kind.Make)
	case c.ValueHigh != 0 && (c.ValueLow != s.low || c.ValueHigh != s.high):
		return dataset.MismatchErrorf("the %s in this database has values of %d..%d bytes, and %d..%d are asked for: leave the size out, or run `%s`", kind.Noun, s.low, s.high, c.ValueLow, c.ValueHigh, kind.Make)
	}
	w.formula = newFormula(m.Seed, m.Size, s)
	return nil
}
