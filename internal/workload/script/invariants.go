package script

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"stroppy/internal/check/invariants"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/script"
	"stroppy/internal/workload"
)

// The numbers of objects that stand for invariants, and for the sums of variables: two for each variable. They are the
// last numbers of all.
const (
	invariantObject = math.MaxUint64 - 1023
	sumObject       = math.MaxUint64 - 511
)

// audit is the kind of the transactions that read the invariants.
const audit = history.Kind(mostScripts+1)*history.Numbered | history.ReadOnly | history.Background

// audits are the invariants of a run, with their statements.
type audits struct {
	list    []invariants.Invariant
	queries [][]*db.Statement
}

// newAudits returns nil if there are no invariants.
func newAudits(list []invariants.Invariant, d *db.Dialect) (*audits, error) {
	if len(list) == 0 {
		return nil, nil
	}
	a := &audits{list: list}
	for i := range list {
		queries, err := queriesOf(&list[i])
		if err != nil {
			return nil, err
		}
		var own []*db.Statement
		for _, q := range queries {
			statement := newStatement(q, d)
			statement.Free = true
			own = append(own, statement)
		}
		a.queries = append(a.queries, own)
	}
	return a, nil
}

// queriesOf parses the SQL of an invariant.
func queriesOf(v *invariants.Invariant) (list []*script.SQL, err error) {
	name := "the invariant " + v.Name
	program, err := script.Parse([]script.File{{Name: name, Text: v.SQL, Weight: 1}}, nil)
	if unset, ok := strings.CutPrefix(problemOf(err), "nothing sets the variable "); ok {
		unset, _, _ = strings.Cut(unset, ":")
		return nil, fmt.Errorf(noVariable, name, unset)
	}
	if err != nil {
		return nil, err
	}
	for _, step := range program.Scripts[0].Steps {
		q := step.SQL
		switch {
		case step.Op != script.Execute || len(q.Joined) > 0 || q.Store != script.NoStore:
			return nil, fmt.Errorf("%s has a meta command: an invariant is SQL alone", name)
		case len(q.Params) > 0:
			return nil, fmt.Errorf(noVariable, name, program.Names[q.Params[0]])
		case q.Control != script.None || q.Writes != script.No:
			return nil, fmt.Errorf("%s has a statement that may write: an invariant only reads", name)
		}
		list = append(list, q)
	}
	if len(list) != v.Queries() {
		return nil, fmt.Errorf("%s has %d statements, and %s needs %d", name, len(list), v.Expect, v.Queries())
	}
	return list, nil
}

const noVariable = "%s uses the variable %s, which has no value there: write the value itself"

// problemOf returns the problem of a mistake in a script; empty for other errors.
func problemOf(err error) string {
	if mistake, ok := errors.AsType[*script.Error](err); ok {
		return mistake.Problem
	}
	return ""
}

// setInvariants parses the setting.
func (c *Config) setInvariants(lines string) error {
	list, err := invariants.Parse(lines)
	for i := range list {
		if err == nil {
			_, err = queriesOf(&list[i])
		}
	}
	c.Invariants = list
	return err
}

// invariantOf returns the line of an invariant that is a mapping in a file.
func invariantOf(fields map[string]string) (string, error) {
	name, query, expect, equals := fields["name"], fields["sql"], fields["expect"], fields["equals"]
	for key := range fields {
		if key != "name" && key != "sql" && key != "expect" && key != "equals" {
			return "", fmt.Errorf("has the unknown key %q in an invariant: take name, sql, expect or equals", key)
		}
	}
	if equals != "" && expect == "" {
		expect, query = "equal", strings.TrimRight(strings.TrimSpace(query), ";")+";\n"+equals
	}
	if name == "" || query == "" || expect == "" {
		return "", errors.New("has an invariant without a name, sql or expect")
	}
	return fmt.Sprintf("%s: %s: %s", name, expect, query), nil
}

// BackgroundClients implements workload.Attended.
func (c *Config) BackgroundClients() int {
	for i := range c.Invariants {
		if c.AuditInterval > 0 && !c.Invariants[i].Races() {
			return 1
		}
	}
	return 0
}

// snapshot opens a session in which the statements of a transaction read one snapshot.
func (w *Script) snapshot(ctx context.Context) (db.SQLSession, error) {
	return w.database.Session(ctx, db.SessionOptions{Isolation: w.dialect.Snapshot, Mode: db.Interactive})
}

// read reads invariants in one transaction. The answers of others are nil.
func (a *audits) read(
	ctx context.Context, s db.SQLSession, which func(*invariants.Invariant) bool,
) ([][]invariants.Answer, error) {
	if err := s.Begin(ctx, true); err != nil {
		return nil, err
	}
	all := make([][]invariants.Answer, len(a.list))
	for i, queries := range a.queries {
		if !which(&a.list[i]) {
			continue
		}
		var results []*db.Result
		for _, q := range queries {
			n, err := s.Do(ctx, q, nil)
			if err == nil {
				err = s.Flush(ctx)
			}
			if err != nil {
				return nil, ofInvariant(&a.list[i], err)
			}
			results = append(results, s.Result(n))
		}
		if len(results) == 2 {
			all[i] = invariants.Pair(rowsOf(results[0]), rowsOf(results[1]))
		} else {
			all[i] = []invariants.Answer{invariants.Single(rowsOf(results[0]))}
		}
	}
	return all, s.Commit(ctx)
}

// ofInvariant names the invariant in an error, whose class stays.
func ofInvariant(v *invariants.Invariant, err error) error {
	own, ok := errors.AsType[*db.Error](err)
	if !ok {
		return err
	}
	copied := *own
	copied.Op = "read the invariant " + v.Name + ": " + own.Op
	return &copied
}

func rowsOf(r *db.Result) invariants.Rows {
	return func(yield func([][]byte) bool) {
		if r == nil {
			return
		}
		cells := make([][]byte, r.Columns)
		for i := range r.Rows() {
			for k, v := range r.Row(i) {
				if cells[k] = v.Text; v.Null {
					cells[k] = nil
				} else if v.Text == nil {
					cells[k] = []byte{}
				}
			}
			if !yield(cells) {
				return
			}
		}
	}
}

func every(*invariants.Invariant) bool { return true }

// startInvariants reads all invariants before the first transaction.
func (w *Script) startInvariants(ctx context.Context) (err error) {
	if w.audits == nil {
		return nil
	}
	s, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	read, err := w.audits.read(ctx, s, every)
	switch {
	case err != nil && db.ClassOf(err) == db.Fatal:
		return &workload.UsageError{Err: err}
	case err != nil:
		return err
	}
	for i := range w.audits.list {
		v := &w.audits.list[i]
		if wrong := v.Wrong(read[i]); wrong != "" {
			return &workload.UsageError{Err: fmt.Errorf("the invariant %s: %s", v.Name, wrong)}
		}
		v.Start = read[i][0]
	}
	return nil
}

// Background implements workload.Workload.
func (w *Script) Background(ctx context.Context) ([]load.Background, error) {
	if w.config.BackgroundClients() == 0 {
		return nil, nil
	}
	s, err := w.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	a := &auditor{SQLSession: s, audits: w.audits, run: w.run, number: uint64(w.config.Clients)}
	return []load.Background{{Client: a, Every: w.config.AuditInterval, Wake: make(chan struct{}, 1)}}, nil
}

// auditor reads the invariants while the clients run.
type auditor struct {
	db.SQLSession
	*audits
	run, number, count uint64
}

// Next implements load.Client.
func (a *auditor) Next(tx *history.Transaction) {
	a.count++
	*tx = history.Transaction{
		ID: history.NewID(a.run, a.number, a.count), Kind: audit, Ops: tx.Ops[:0], Broken: tx.Broken[:0],
	}
}

// Attempt implements load.Client. The answers are kept as bytes, like values that no formula of a workload makes.
func (a *auditor) Attempt(ctx context.Context, tx *history.Transaction) error {
	tx.Outcome, tx.Ops, tx.Broken = history.Unknown, tx.Ops[:0], tx.Broken[:0]
	all, err := a.read(ctx, a.SQLSession, func(v *invariants.Invariant) bool { return !v.Races() })
	if err != nil {
		return err
	}
	for i, list := range all {
		if list == nil {
			continue
		}
		text := invariants.Encode(i, list)
		op := history.Op{Object: invariantObject + uint64(i), Observed: true, State: history.Broken, Value: int64(len(text))}
		tx.Ops, tx.Broken = append(tx.Ops, op), append(tx.Broken, text...)
	}
	tx.Outcome = history.Committed
	return nil
}

// ResolveUnknown implements load.Client.
func (a *auditor) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	workload.ResolvedWithoutLookUp(tx)
	return nil
}

// endInvariants writes the answers into the end state. Each is an unexpected row, and an object for the comparison of
// nodes.
func (w *Script) endInvariants(ctx context.Context, end *history.EndWriter) (err error) {
	later, err := w.later(ctx)
	if err != nil {
		return err
	}
	s, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	read, err := w.audits.read(ctx, s, func(v *invariants.Invariant) bool { return !v.Races() || !later })
	if err != nil {
		return err
	}
	for i := range w.audits.list {
		if read[i] == nil {
			err = end.Unexpected(string(invariants.EncodeLater(i)))
		} else {
			v := &w.audits.list[i]
			object := history.Object{N: invariantObject + uint64(i), Value: v.Fingerprint(&read[i][0]), State: history.Whole}
			err = errors.Join(end.Object(object), end.Unexpected(string(invariants.Encode(i, read[i]))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// later reports whether runs that began after this one may have changed what it sums.
func (w *Script) later(ctx context.Context) (later bool, err error) {
	if w.receipts == nil {
		return w.recalled, nil
	}
	err = query(ctx, w.database, w.receipts.latest, nil, func(row []db.Value) error {
		later = history.ID(row[0].Int).Run() != w.run
		return nil
	})
	return later, err
}

// invariantsOf returns the invariants of a recording.
func invariantsOf(h history.Header) ([]invariants.Invariant, error) {
	return invariants.Recall(h.Keys[keyInvariants], h.Keys[keyStarts])
}
