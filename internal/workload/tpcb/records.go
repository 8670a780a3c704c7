package tpcb

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

// The collections.
const (
	tableRow   = "stroppy_tpcb_row"
	tableEntry = "stroppy_tpcb_history" // one record for each transaction
	tableBare  = "stroppy_tpcb_bare"    // the runs that kept no history
)

// tableCounter is the collection of the rows without versions. The id of row n is n+1, because a stored procedure
// is called with zeros before a run.
const tableCounter = "stroppy_tpcb_counter"

const (
	kindLetters = "bta" // for branch, teller and account
	rowDigits   = 13    // the number of digits of maxRows
)

// appendRowText appends the id of a row's record: the letter of its kind and its number.
func appendRowText(dst []byte, k kind, id uint64) []byte {
	return workload.AppendDecimal(append(dst, kindLetters[k]), id, rowDigits)
}

// parseRowKey reads the id of a row's record.
func parseRowKey(text []byte) (k kind, id int64, ok bool) {
	if len(text) != 1+rowDigits {
		return noKind, 0, false
	}
	k = kind(min(uint(strings.IndexByte(kindLetters, text[0])), uint(noKind)))
	id, ok = workload.ParseDecimal(text[1:])
	return k, id, ok && k < noKind
}

// recordModel is the workload on a database of records. Its rows have versions, unless the configuration asks for none
// and the database adds without reading. Otherwise versions cost little, because they are part of a record that is
// written as a whole anyway.
type recordModel struct {
	*dataset.Records
	config   *Config
	versions bool                   // of the rows in the database
	records  *workload.StateRecords // without the history if a run keeps no history
	history  *workload.StateRecords // with the history
	counters *db.Collection         // the rows without versions
	bare     *db.Collection         // the runs that kept no history

	procedures db.Procedures // nil: the database has no stored procedures
}

// newRecordModel returns the data model. It completes the configuration with the defaults of the model.
func newRecordModel(database db.Records, c *Config) (model, error) {
	limits := database.Limits()
	if most := limits.Writes; most > 0 && most < operations+1 {
		return nil, fmt.Errorf("a transaction of tpcb has %d writes, and one of this database at most %d", operations+1, most)
	}
	switch {
	case c.Plain && !limits.Adds:
		return nil, errVersionsAlways
	case limits.Simple && c.Versions:
		return nil, errVersionsSimple
	case c.Mode == workload.Procedure && !limits.Deferred && c.History:
		return nil, errProcedureHistory
	}
	c.Plain = c.Plain || limits.Simple
	c.AnyRows = c.AnyRows || !c.Versions && !c.Plain
	c.Mode, c.Versions = workload.RecordMode(limits, c.Mode), !c.Plain
	m := &recordModel{config: c, bare: &db.Collection{Name: tableBare, ID: db.Integer}}
	m.counters = &db.Collection{Name: tableCounter, ID: db.Integer, Counter: true, Fields: []db.Field{{Name: "balance", Type: db.Integer, Additive: true}}}
	m.history = workload.NewStateRecords(tableRow, tableEntry, db.Integer, false)
	m.records = m.history
	if !c.History {
		m.records = workload.NewStateRecords(tableRow, "", db.Integer, false)
	}
	contents := dataset.Contents{
		Collections: []*db.Collection{m.history.Objects, m.history.Ledger, m.bare}, Things: []*db.Collection{m.history.Objects}, Put: m.put,
		Rehearse: func(ctx context.Context, s db.RecordSession) error {
			return m.records.Rehearse(ctx, s, m.style(), 0, operations)
		},
	}
	if limits.Adds {
		contents.Collections = append(contents.Collections, m.counters)
	}
	if c.Plain {
		contents.Things = []*db.Collection{m.counters}
	}
	m.procedures, _ = database.(db.Procedures)
	var err error
	m.Records, err = dataset.NewRecords(dataKind, database, contents)
	return m, err
}

// procedure is the transaction on rows without versions, in a library of the server. It writes no record of the
// history. Its arguments are the amount and the ids of the rows in the order of the operations.
var procedure = func() *db.Procedure {
	p := &db.Procedure{Name: "PgbenchNoinsert", Params: slices.Repeat([]db.Type{db.Integer}, 1+operations), Columns: []db.Type{db.Integer}}
	text := "pgbench_selectaccounts SELECT balance FROM " + tableCounter + " WHERE id = :0"
	for _, c := range columns {
		text += "\npgbench_update" + c.table + " UPDATE " + tableCounter + " SET balance = balance + :0 WHERE id = :1"
	}
	p.Texts = map[db.Language]string{db.Library: text}
	return p
}()

// put inserts the rows from ≤ n < to.
func (m *recordModel) put(ctx context.Context, s db.RecordSession, n dataset.Metadata, from, to uint64) error {
	f, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return err
	}
	h, rows, collection := chooser{size: f.size}, make([][]db.Value, 0, to-from), m.counters
	if f.versions {
		collection = m.records.Objects
	}
	for i := from; i < to; i++ {
		row := []db.Value{counterID(i), {}}
		if f.versions {
			row = workload.ObjectValues(h.AppendID(nil, i), workload.State{})
		}
		rows = append(rows, row)
	}
	return s.Insert(ctx, collection, rows...)
}

func counterID(row uint64) db.Value { return db.Value{Int: int64(row) + 1} }

// Refusal implements workload.RecordLogic. No transaction is refused.
func (h *chooser) Refusal(*history.Transaction) history.Reason { return 0 }

// AppendID implements workload.RecordLogic.
func (h *chooser) AppendID(dst []byte, n uint64) []byte {
	k, id := h.size.place(n)
	return appendRowText(dst, k, id)
}

// adopt does nothing, because no other program makes such collections.
func (m *recordModel) adopt(context.Context, uint64) error { return nil }

func (m *recordModel) rule(f *facts, c dataset.Census) string {
	if len(c) == 0 {
		return ""
	}
	return oneTableRule(f, c)
}

func (m *recordModel) replaces(*facts) {}

func (m *recordModel) take(f *facts) error {
	if !f.versions && !m.Database.Limits().Adds {
		return errVersionsAlways
	}
	m.versions = f.versions
	return nil
}

// calls reports whether a transaction is a call of the procedure.
func (m *recordModel) calls() bool { return m.procedures != nil && m.config.Mode == workload.Procedure }

// Prepare implements dataset.Store. It makes the procedure of the transactions ready, and marks a run that keeps no
// history.
func (m *recordModel) Prepare(ctx context.Context, run uint64) error {
	if m.calls() {
		if err := m.procedures.Define(ctx, procedure); err != nil {
			return err
		}
	}
	if err := m.Records.Prepare(ctx, run); err != nil || m.config.History {
		return err
	}
	err := m.Change(ctx, func(s db.RecordSession) error {
		return s.Insert(ctx, m.bare, []db.Value{{Int: int64(run)}})
	})
	if db.ConstraintOf(err) == db.UniqueKey { // by an earlier try whose answer was lost
		err = nil
	}
	return err
}

func (m *recordModel) style() workload.RecordStyle {
	switch l := m.Database.Limits(); {
	case l.Optimistic:
		return workload.RecordsWrite
	case l.Deferred:
		return workload.RecordsAddLate
	}
	return workload.RecordsAdd
}

func (m *recordModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	if m.calls() {
		s, err := m.procedures.ProcedureSession(ctx, m.config.SessionOptions())
		return &callClient{chooser: h, ProcedureSession: s}, err
	}
	s, err := m.Database.RecordSession(ctx, m.config.SessionOptions())
	client := workload.NewRecordClient(s, h, m.records, workload.Rules{Missing: noSuchRow}, m.style())
	if m.versions {
		return client, err
	}
	c := &addClient{RecordClient: client, rows: make([]db.Value, operations)}
	c.add = db.Update{Collection: m.counters, Add: []int{1}, Unseen: true}
	return c, err
}

// callClient runs one client's transactions by the procedure. It keeps no history, so the end state decides the outcome
// if an answer is lost.
type callClient struct {
	*chooser
	db.ProcedureSession
	args [1 + operations]db.Value
}

// Attempt implements load.Client.
func (c *callClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	amount := tx.Ops[opAccount].Amount
	c.args[0].Int = amount
	for i := range tx.Ops {
		c.args[1+i] = counterID(tx.Ops[i].Object)
	}
	result, err := c.Call(ctx, procedure, c.args[:])
	switch {
	case err != nil:
		return workload.Ended(tx, err, workload.Rules{Missing: noSuchRow})
	case result.Rows() != 1 || result.Row(0)[0].Null:
		workload.Decide(tx, noSuchRow)
	default:
		workload.Observe(&tx.Ops[opAccount], result.Row(0)[0].Int-amount, 0, 0)
		workload.Decide(tx, 0)
	}
	return nil
}

// ResolveUnknown implements load.Client.
func (*callClient) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	tx.Outcome = history.Unknown
	return nil
}

// addClient runs one client's transactions on rows without versions. It adds to all three rows and reads only the
// account, whose balance TPC-B returns. So only transactions on one account conflict. The read is not a snapshot read.
// With snapshot reads two transactions that saw one balance could both commit, and no order would explain their
// results.
//
// If a teller or a branch is missing, adding to it creates it again. The end state then shows the difference.
type addClient struct {
	*workload.RecordClient // makes the transactions and looks them up
	add                    db.Update

	rows    []db.Value // the ids of the records
	amounts [operations]db.Value
}

// Attempt implements load.Client.
func (c *addClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	return workload.Ended(tx, c.attempt(ctx, tx), workload.Rules{Missing: noSuchRow, Logged: true})
}

func (c *addClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.Start(ctx, tx); err != nil {
		return err
	}
	for i := range tx.Ops {
		c.rows[i], c.amounts[i].Int = counterID(tx.Ops[i].Object), tx.Ops[i].Amount
	}
	before, err := c.FindAndUpdate(ctx, &c.add, c.rows[opAccount], c.amounts[:1])
	if err != nil {
		return err
	}
	found := 0
	if before.Found {
		workload.Observe(&tx.Ops[opAccount], before.Values[1].Int, 0, 0)
		if found, err = c.Update(ctx, &c.add, c.rows[opAccount+1:], c.amounts[1:]); err != nil {
			return err
		}
	}
	if found != operations-1 {
		return c.Refuse(ctx, tx, noSuchRow)
	}
	if err := c.Log(ctx, tx); err != nil {
		return err
	}
	return c.End(ctx, tx, 0)
}

func (m *recordModel) endState(ctx context.Context, e *endRows) error {
	rows, row := m.history.Objects, e.rowRecord
	if !m.versions {
		rows, row = m.counters, e.counterRecord
	}
	return m.With(ctx, func(s db.RecordSession) error {
		for _, part := range []struct {
			collection *db.Collection
			things     string
			record     func(values []db.Value) error
		}{
			{rows, "rows", row},
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

func (e *endRows) counterRecord(values []db.Value) error {
	id := values[db.ID]
	k, number := e.size.place(uint64(id.Int) - 1)
	if id.Null || k == noKind || values[1].Null {
		return e.end.Unexpected(fmt.Sprintf("a row %d%s, which the load did not make or of which a field is missing", id.Int, id.Text))
	}
	return e.row(k, int64(number), workload.State{Balance: values[1].Int})
}

func (e *endRows) rowRecord(values []db.Value) error {
	k, id, known := parseRowKey(values[db.ID].Text)
	s, whole := workload.StateOf(values)
	if !known || !whole {
		return e.end.Unexpected(fmt.Sprintf("a row %q, which the load did not make or of which a field is missing", values[db.ID].Text))
	}
	return e.row(k, id, s)
}

// recordLeg stores one leg of a transaction.
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

// leg stores one leg on a row. A leg on a branch counts for the sum of the history.
func (e *endRows) leg(l history.Row, k kind, id int64) error {
	n, ok := e.size.number(k, id)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a leg of transaction %v on %s %d, which the load did not make", l.Transaction, kindNames[k], id))
	}
	if k == branch {
		e.books.history += l.Amount
	}
	l.Object = n
	return e.end.Row(l)
}
