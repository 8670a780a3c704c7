// Package appends is the workload of lists. A transaction appends to lists and reads them, several lists in one
// transaction and each any number of times. A read shows every append before it in order. So the reads alone show
// what each transaction saw of the others, and every named anomaly of isolation (Kingsbury and Alvaro, Elle:
// Inferring Isolation Anomalies from Experimental Observations, VLDB 2020).
//
// # Lists
//
// A list belongs to one run. It is in a window of live lists, from which each client draws. A client that has read a
// full list draws neither it nor an earlier list any more. So the window moves on, lists stay short, and clients meet
// on the same lists with only the database in common. A missing list and an empty list are the same.
//
// # Lost answers
//
// Nothing closes the id of a transaction, because a list without its elements may get them later. So the transaction
// stays unknown for its client. A read of one of its elements, or the end state, shows that it was applied. If the
// end state has nothing of it, it was not applied, or it was lost and nobody saw the difference.
package appends

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "append"

// kind describes the lists to a database.
var kind = dataset.Kind{
	Workload: Name, Noun: "set of lists", Things: "sets", Unit: "set of lists", Make: "stroppy run append", Schema: 1,
	Table: "stroppy_append_meta",
}

// The kinds of transactions.
const (
	onlyAppends = 1 * history.Numbered
	mixed       = 2 * history.Numbered
	onlyReads   = 1*history.Numbered | history.ReadOnly
)

var kinds = [...]history.Declared{onlyAppends.Named("append"), mixed.Named("append and read"), onlyReads.Named("read")}

// noSuchList is the reason of a rejected transaction: a list that was made does not exist any more.
const noSuchList history.Reason = 1

// Lists is the workload on one open database.
type Lists struct {
	*dataset.Set
	config Config
	model  model
}

// model is the workload written for one data model.
type model interface {
	dataset.Store
	client(ctx context.Context, h *chooser) (load.Client, error)
	storage() lists.Storage // how lists are kept
	// endState hands over every list.
	endState(ctx context.Context, end *endLists) error
}

var models = dataset.Models[model, Config]{SQL: newSQLModel, Records: newRecordModel}

// New binds the workload to a database of any model that it is written for.
func New(database db.Database, c Config) (*Lists, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	l := &Lists{config: c}
	var err error
	l.model, l.Set, err = dataset.Bind(kind, database, &l.config, models, dataset.Expected{
		Session: &l.config.Session, Clients: c.Clients, Seed: c.Seed, Size: 1,
		Take: func(*dataset.Metadata) error { return nil },
		Client: func(ctx context.Context, i int) (load.Client, error) {
			return l.model.client(ctx, newChooser(&l.config, l.Seed(), l.Run(), uint64(i)))
		},
		Another: func(d db.Database) (dataset.Bound, error) { return New(d, l.config) },
	})
	return l, err
}

// Header returns what the checks need in the history; valid after Attach.
func (l *Lists) Header() history.Header {
	return l.Complete(history.Header{
		Kinds:   kinds[:],
		Reasons: []history.Declared{noSuchList.Named("no such list")},
		Object:  "list",
		Unit:    "number",
		Keys: map[string]string{
			"access":      l.config.Access,
			"storage":     l.model.storage().String(),
			"mode":        l.config.Mode,
			"lists":       strconv.FormatUint(l.config.live(), 10),
			"list_length": strconv.FormatUint(l.config.Length, 10),
			"operations":  strconv.FormatUint(l.config.Operations, 10),
		},
	})
}

// EndState downloads all lists, as dataset.Download does: a list agrees with itself.
func (l *Lists) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, l.Set, end.Restart, func() (none struct{}, agrees bool, err error) {
		rows := &endLists{end: end, report: dataset.Progress{Report: progress, Total: 1}}
		if err = l.model.endState(ctx, rows); err == nil {
			err = rows.close()
		}
		if err != nil {
			err = fmt.Errorf("download the lists: %w", err)
		}
		return none, true, err
	})
}

// endLists turns what a database holds into the end state: an object a list, whose value is
// its length, and a row an element.
type endLists struct {
	end    *history.EndWriter
	report dataset.Progress
	read   []uint64 // elements of the list that is read

	open   bool // its elements come one by one
	object uint64
}

// text keeps a list that is a text of its elements.
func (e *endLists) text(object uint64, text []byte) error {
	e.report.Row()
	var ok bool
	if e.read, ok = appendParsed(e.read[:0], text); !ok {
		return e.end.Unexpected(fmt.Sprintf("%s with a text of %d bytes, which no transaction writes", listName(object), len(text)))
	}
	if len(e.read) == 0 {
		return nil // made before it was appended to
	}
	for i, element := range e.read {
		if err := e.row(object, uint64(i)+1, element); err != nil {
			return err
		}
	}
	return e.list(object, uint32(len(e.read)), e.read[len(e.read)-1])
}

func (e *endLists) row(object, place, element uint64) error {
	return e.end.Row(history.Row{Transaction: writer(object, element), Number: numberOf(element), Object: object, Version: place})
}

func (e *endLists) list(object uint64, length uint32, last uint64) error {
	return e.end.Object(history.Object{N: object, Value: int64(length), Version: uint64(length), Writer: writer(object, last)})
}

// element keeps the next element of the lists of rows, which come in the order of their places.
func (e *endLists) element(object uint64, place, element int64) error {
	if !e.open || object != e.object {
		if err := e.close(); err != nil {
			return err
		}
		e.report.Row()
		e.open, e.object, e.read = true, object, e.read[:0]
	}
	if element < 0 || writer(object, uint64(element)).Sequence() == 0 || place < 1 || place >= lastPlace {
		return e.end.Unexpected(fmt.Sprintf("%s with an element %d at place %d, which no transaction writes", listName(object), element, place))
	}
	e.read = append(e.read, uint64(element))
	return e.row(object, uint64(place), uint64(element))
}

// close ends the list that came in rows.
func (e *endLists) close() error {
	open := e.open
	if e.open = false; !open || len(e.read) == 0 {
		return nil
	}
	return e.list(e.object, uint32(len(e.read)), e.read[len(e.read)-1])
}
