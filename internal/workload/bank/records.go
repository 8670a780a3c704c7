package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// recordStyles are the styles of the transaction. A locked transaction writes each account before it decides, so that
// other transactions cannot change the account.
var recordStyles = map[string]workload.RecordStyle{
	Atomic: workload.RecordsAdd, Locked: workload.RecordsLock, RMW: workload.RecordsWrite,
}

// recordModel is the bank on a database of records. An account's id is its BIC, a slash and its BAN in eleven digits,
// so that the ids have the order of the keys' numbers.
type recordModel struct {
	*dataset.Records
	config  *Config
	records *workload.StateRecords
}

const banDigits = 11

// appendAccountText appends the id of an account's record.
func appendAccountText(dst []byte, key uint64) []byte {
	dst = appendBIC(dst, key)
	return workload.AppendDecimal(append(dst, '/'), ban(key), banDigits)
}

// accountOf reads an account's id. It returns false if the formula makes no such key.
func accountOf(text []byte) (uint64, bool) {
	if len(text) != bicLength+1+banDigits || text[bicLength] != '/' {
		return 0, false
	}
	number, ok := workload.ParseDecimal(text[bicLength+1:])
	if !ok {
		return 0, false
	}
	return keyOf(text[:bicLength], number)
}

// newRecordModel returns the data model. It completes the configuration with the defaults of the model.
func newRecordModel(database db.Records, c *Config) (model, error) {
	limits := database.Limits()
	if limits.Optimistic {
		c.Update = cmp.Or(c.Update, RMW)
	}
	c.Update, c.Mode = cmp.Or(c.Update, Atomic), workload.RecordMode(limits, c.Mode)
	if limits.Deferred && c.Update == Locked {
		return nil, fmt.Errorf("update %s needs locks that a client holds, and a transaction of this database is one call: take atomic or rmw", c.Update)
	}
	if limits.Optimistic && c.Update != RMW {
		return nil, fmt.Errorf("update %s needs SQL: a key-value store reads, computes and writes, so take rmw", c.Update)
	}
	if c.AuditAge > 0 {
		return nil, errNoPast
	}
	if _, ok := database.(db.RecordRanger); c.openings() && !ok {
		return nil, errors.New("opening-share, predicate-share and low-balance-share need transactions that read ranges of keys, which this database or its driver does not have: leave them out, or take another database")
	}
	// A payroll writes its payer, its payees and its entry in the ledger.
	if most := limits.Writes; most > 0 && c.PayrollShare > 0 && c.PayrollLegs+2 > most {
		return nil, fmt.Errorf("payroll-legs is %d, but a transaction of this database has at most %d writes: take at most %d", c.PayrollLegs, most, most-2)
	}
	m := &recordModel{config: c, records: workload.NewStateRecords(tableAccount, tableLedger, db.Decimal, true)}
	var err error
	m.Records, err = dataset.NewRecords(kind, database, dataset.Contents{
		Collections: []*db.Collection{m.records.Objects, m.records.Ledger}, Things: []*db.Collection{m.records.Objects}, Put: m.put,
		Rehearse: m.rehearse,
	})
	return m, err
}

// rehearse carries out a transaction of each kind.
func (m *recordModel) rehearse(ctx context.Context, s db.RecordSession) error {
	for _, kind := range []struct {
		share       float64
		reads, legs int
	}{{1, 0, 2}, {m.config.PayrollShare, 0, 1 + m.config.PayrollLegs}, {m.config.JointShare, 1, 2}, {m.config.InquiryShare, 2, 0}} {
		if kind.share == 0 {
			continue
		}
		if err := m.records.Rehearse(ctx, s, m.style(), kind.reads, kind.legs); err != nil {
			return err
		}
	}
	return nil
}

// put inserts the accounts from ≤ n < to.
func (m *recordModel) put(ctx context.Context, s db.RecordSession, n dataset.Metadata, from, to uint64) error {
	f, accounts := newFormula(n.Seed), make([][]db.Value, 0, to-from)
	for i := from; i < to; i++ {
		accounts = append(accounts, workload.ObjectValues(appendAccountText(nil, f.key(i)), workload.State{Balance: f.opening(i)}))
	}
	return s.Insert(ctx, m.records.Objects, accounts...)
}

// AppendID implements workload.RecordLogic.
func (h *chooser) AppendID(dst []byte, n uint64) []byte {
	return appendAccountText(dst, h.formula.key(n))
}

// Refusal implements workload.RecordLogic.
func (h *chooser) Refusal(tx *history.Transaction) history.Reason {
	return h.formula.refusal(tx, h.guarded)
}

func (m *recordModel) session(ctx context.Context) (db.RecordSession, error) {
	return m.Database.RecordSession(ctx, m.config.SessionOptions())
}

func (m *recordModel) style() workload.RecordStyle {
	if m.Database.Limits().Deferred && m.config.Update == Atomic {
		return workload.RecordsAddLate
	}
	return recordStyles[m.config.Update]
}

func (m *recordModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	style := m.style()
	h.guarded = m.config.Update == Atomic || m.Database.Limits().Guarded
	if m.config.openings() {
		return m.newRecordOpenings(ctx, h, style)
	}
	s, err := m.session(ctx)
	return workload.NewRecordClient(s, h, m.records, rules, style), err
}

func (m *recordModel) audits(ctx context.Context) (auditSession, error) {
	s, err := m.session(ctx)
	l := m.Database.Limits()
	n := cmp.Or(l.Reads, min(cmp.Or(l.Writes, mostFound), mostFound))
	return &recordAudits{RecordSession: s, accounts: m.records.Objects, ids: make([]db.Value, n), found: make([]db.Record, n)}, err
}

// mostFound bounds the ids of one Find of an audit, unless the store asks for more.
const mostFound = 500

// recordAudits reads accounts of a database of records. Each audit is one transaction.
type recordAudits struct {
	db.RecordSession
	accounts *db.Collection

	ids   []db.Value // of one Find
	found []db.Record
}

func (s *recordAudits) all(ctx context.Context, a *auditor, tx *history.Transaction) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	err := s.Scan(ctx, s.accounts, db.Value{Null: true}, 0, func(account []db.Value) error { return addRecord(a, tx, account) })
	if err != nil {
		return err
	}
	return s.Commit(ctx)
}

// addRecord adds an account to an audit.
func addRecord(a *auditor, tx *history.Transaction, account []db.Value) error {
	state, ok := workload.StateOf(account)
	if !ok {
		return db.Fatalf("read "+string(account[db.ID].Text), "one of its fields is missing, which no transaction takes away")
	}
	if key, ok := accountOf(account[db.ID].Text); ok {
		a.add(tx, key, state)
	}
	return nil
}

func (s *recordAudits) sample(ctx context.Context, a *auditor, tx *history.Transaction) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	for ops := range slices.Chunk(tx.Ops, len(s.ids)) {
		ids, found := s.ids[:len(ops)], s.found[:len(ops)]
		for i := range ops {
			ids[i].Text = a.AppendID(ids[i].Text[:0], ops[i].Object)
		}
		if err := s.Find(ctx, s.accounts, ids, found); err != nil {
			return err
		}
		for i := range found {
			if !found[i].Found {
				continue
			}
			if err := addRecord(a, tx, found[i].Values); err != nil {
				return cmp.Or(s.Rollback(ctx), err)
			}
		}
	}
	return s.Commit(ctx)
}

func (m *recordModel) download(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.RecordSession) error {
		err := s.Scan(ctx, m.records.Objects, db.Value{Null: true}, 0, func(account []db.Value) error {
			key, known := accountOf(account[db.ID].Text)
			state, whole := workload.StateOf(account)
			if made, err := e.account(key, known && whole, state); made {
				return err
			}
			return e.end.Unexpected(fmt.Sprintf("an account %q, which the load did not make", account[db.ID].Text))
		})
		if err != nil {
			return fmt.Errorf("download the accounts: %w", err)
		}
		err = s.Scan(ctx, m.records.Ledger, db.Value{Null: true}, 0, func(transfer []db.Value) error {
			e.report.Row()
			return m.records.Legs(transfer, e.recordLeg)
		})
		if err != nil {
			return fmt.Errorf("download the ledger: %w", err)
		}
		return nil
	})
}

// recordLeg stores a leg of a transfer.
func (e *endRows) recordLeg(l workload.Leg) error {
	if l.Row.Mark == history.Tombstone {
		return e.end.Row(l.Row)
	}
	key, known := accountOf(l.Object)
	if !known || !l.Whole {
		return e.end.Unexpected(fmt.Sprintf("a leg of transfer %v on %q, an account that no formula makes, or without an amount or a version", l.Row.Transaction, l.Object))
	}
	l.Row.Object = e.formula.number(key)
	return e.entry(l.Row)
}
