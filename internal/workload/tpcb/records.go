package tpcb

import (
	"cmp"
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// tableEntry is the collection of the history, one record a transaction.
const tableEntry = "stroppy_tpcb_history"

// recordModel is the workload on a database of records. A row's id is what its key is
// in a key-value store, without the prefix. Its rows always have versions, as there.
type recordModel struct {
	*dataset.Records
	config  *Config
	records *workload.StateRecords // without the history if a run keeps none
	history *workload.StateRecords // with it
	bare    *db.Collection         // the runs that kept no history
}

// newRecordModel fills in what the configuration leaves to the data model.
func newRecordModel(database db.Records, c *Config) (model, error) {
	if c.Plain {
		return nil, errVersionsAlways
	}
	c.Mode, c.Versions, c.AnyRows = cmp.Or(c.Mode, workload.Interactive), true, true
	m := &recordModel{config: c, bare: &db.Collection{Name: tableBare, ID: db.Integer}}
	m.history = workload.NewStateRecords(tableRow, tableEntry, db.Integer, false)
	m.records = m.history
	if !c.History {
		m.records = workload.NewStateRecords(tableRow, "", db.Integer, false)
	}
	m.Records = dataset.NewRecords(dataKind, database, dataset.Contents{
		Things: []*db.Collection{m.history.Objects}, Others: []*db.Collection{m.history.Ledger, m.bare}, Put: m.put,
	})
	return m, nil
}

// put inserts the rows from ≤ n < to.
func (m *recordModel) put(ctx context.Context, s db.RecordSession, n dataset.Metadata, from, to uint64) error {
	f, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return err
	}
	h, rows := chooser{size: f.size}, make([][]db.Value, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, workload.ObjectValues(h.AppendID(nil, i), workload.State{}))
	}
	return s.Insert(ctx, m.records.Objects, rows...)
}

// AppendID implements workload.RecordLogic.
func (h *chooser) AppendID(dst []byte, n uint64) []byte {
	k, id := h.size.place(n)
	return appendRowText(dst, k, id)
}

// adopt does nothing: nobody else makes such collections.
func (m *recordModel) adopt(context.Context, uint64) error { return nil }

func (m *recordModel) rule(f *facts, c dataset.Census) string { return oneTableRule(f, c) }

func (m *recordModel) replaces(*facts) {}

func (m *recordModel) take(*facts) error { return nil }

// Prepare implements dataset.Store. It marks a run that keeps no history.
func (m *recordModel) Prepare(ctx context.Context, run uint64) error {
	if m.config.History {
		return nil
	}
	err := m.Change(ctx, func(s db.RecordSession) error {
		return s.Insert(ctx, m.bare, []db.Value{{Int: int64(run)}})
	})
	if db.ConstraintOf(err) == db.UniqueKey { // by an earlier try whose answer was lost
		err = nil
	}
	return err
}

func (m *recordModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.RecordSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	return workload.NewRecordClient(s, h, m.records, workload.Rules{Missing: noSuchRow}, workload.RecordsAdd), err
}

func (m *recordModel) endState(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.RecordSession) error {
		for _, part := range []struct {
			collection *db.Collection
			things     string
			record     func(values []db.Value) error
		}{
			{m.history.Objects, "rows", e.rowRecord},
			{m.bare, "marks of runs", func(run []db.Value) error { return e.bareRun(uint64(run[db.ID].Int)) }},
			{m.history.Ledger, "history", func(entry []db.Value) error {
				e.report.Row()
				return m.history.Legs(entry, e.recordLeg)
			}},
		} {
			if err := s.Scan(ctx, part.collection, db.Value{Null: true}, 0, part.record); err != nil {
				return fmt.Errorf("download the %s: %w", part.things, err)
			}
		}
		return nil
	})
}

func (e *endRows) rowRecord(values []db.Value) error {
	k, id, known := parseRowKey(values[db.ID].Text)
	s, whole := workload.StateOf(values)
	if !known || !whole {
		return e.end.Unexpected(fmt.Sprintf("a row %q, which the load did not make or of which a field is missing", values[db.ID].Text))
	}
	return e.row(k, id, s)
}

// recordLeg keeps one leg of a transaction.
func (e *endRows) recordLeg(l workload.Leg) error {
	if l.Row.Mark == history.Tombstone {
		return e.end.Row(l.Row)
	}
	k, id, known := parseRowKey(l.Object)
	if !known || !l.Whole {
		return e.end.Unexpected(fmt.Sprintf("a leg of transaction %v on %q, which is no row, or without an amount or a version", l.Row.Transaction, l.Object))
	}
	return e.leg(l.Row, k, id)
}
