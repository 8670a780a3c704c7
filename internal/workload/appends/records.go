package appends

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// recordModel is the workload on a database of records. A list is a record, whose id is the number of the list.
type recordModel struct {
	*dataset.Records
	config  *Config
	lists   *db.Collection
	replace *db.Update // of a list's text
	add     *db.Update // appends to a list's text
	look    *db.Update // changes nothing
}

func newRecordModel(database db.Records, c *Config) (model, error) {
	limits := database.Limits()
	what := "a database of records"
	if limits.Optimistic {
		what = "a key-value store"
	}
	c.Mode = workload.RecordMode(limits, c.Mode)
	if err := c.textOnly(what); err != nil {
		return nil, err
	}
	if writes, most := int(c.Operations), limits.Writes; most > 0 && writes > most {
		return nil, fmt.Errorf("operations is %d, and a transaction of this database has at most %d writes: take fewer", writes, most)
	}
	m := &recordModel{config: c, lists: &db.Collection{Name: table, ID: db.Integer, Fields: []db.Field{{Name: "elements", Type: db.Text}}}}
	m.replace = &db.Update{Collection: m.lists, Set: []int{1}}
	m.add, m.look = &db.Update{Collection: m.lists, Append: []int{1}}, &db.Update{Collection: m.lists}
	var err error
	m.Records, err = dataset.NewRecords(kind, database, dataset.Contents{
		Collections: []*db.Collection{m.lists}, Things: []*db.Collection{m.lists},
		Put:      func(context.Context, db.RecordSession, dataset.Metadata, uint64, uint64) error { return nil }, // a list begins with its first element
		Rehearse: m.rehearse,
	})
	return m, err
}

var errNoProcedure = errors.New("this workload has no mode procedure, because its transactions draw their number of operations: take pipelined or interactive")

func (m *recordModel) storage() lists.Storage {
	if m.late() {
		return lists.Objects
	}
	return lists.Values
}

func (m *recordModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.RecordSession(ctx, m.config.SessionOptions())
	if m.late() {
		return &lateClient{chooser: h, RecordSession: s, model: m}, err
	}
	return &valueClient{chooser: h, RecordSession: s, model: m, together: m.config.Mode != workload.Interactive}, err
}

func (m *recordModel) endState(ctx context.Context, end *endLists) error {
	return m.With(ctx, func(s db.RecordSession) error {
		return s.Scan(ctx, m.lists, db.Value{Null: true}, 0, func(values []db.Value) error {
			if values[db.ID].Null {
				return end.end.Unexpected(fmt.Sprintf("a record %q, which no transaction writes", values[db.ID].Text))
			}
			return end.text(uint64(values[db.ID].Int), values[1].Text)
		})
	})
}
