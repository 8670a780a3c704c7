package appends

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// called is a session that notes what it is called with, and answers by answer.
type called struct {
	db.ProcedureSession
	procedures []*db.Procedure
	args       [][]db.Value
	answer     func(p *db.Procedure) (*db.Result, error)
}

func (s *called) Call(_ context.Context, p *db.Procedure, args []db.Value) (*db.Result, error) {
	s.procedures, s.args = append(s.procedures, p), append(s.args, slices.Clone(args))
	return s.answer(p)
}

func newTestProcedures(t *testing.T) *procedureModel {
	t.Helper()
	m, err := newProcedureModel(nil, testConfig(2))
	if err != nil {
		t.Fatal(err)
	}
	return m.(*procedureModel)
}

// TestProceduresMakeListsBeforeTheyAreAppendedTo checks that once, and again where a cluster has lost them.
func TestProceduresMakeListsBeforeTheyAreAppendedTo(t *testing.T) {
	m := newTestProcedures(t)
	lost := false
	s := &called{answer: func(p *db.Procedure) (*db.Result, error) {
		switch {
		case p == m.insert:
			return nil, &db.Error{Class: db.Constraint, Constraint: db.UniqueKey}
		case lost:
			return nil, &db.Error{Class: db.Constraint, Constraint: db.ForeignKey}
		}
		return &db.Result{Columns: 2, Values: []db.Value{{Text: appendText(nil, newElement(history.NewID(1, 0, 9), 0))}, {Int: 1}, {Null: true}, {Int: 1}}}, nil
	}}
	c := &procedureClient{chooser: newChooser(testConfig(2), 7, 1, 1), ProcedureSession: s, model: m}
	tx := history.Transaction{ID: history.NewID(1, 1, 5), Kind: mixed, Ops: []history.Op{{Object: newObject(1, 2)}, {Object: newObject(1, 3), Write: true}}}
	attempt := func(want history.Outcome, reason history.Reason, calls ...*db.Procedure) {
		t.Helper()
		s.procedures, s.args = nil, nil
		if err := c.Attempt(t.Context(), &tx); err != nil || tx.Outcome != want || tx.Reason != reason {
			t.Errorf("%v, outcome %v, reason %d", err, tx.Outcome, tx.Reason)
		}
		if !slices.Equal(s.procedures, calls) {
			t.Errorf("%d calls, not %d", len(s.procedures), len(calls))
		}
	}
	attempt(history.Committed, 0, m.insert, m.mixed[2])
	steps := s.args[1]
	if len(steps) != len(m.mixed[2].Params) || steps[0].Int != 1 || len(steps[2].Text) != 0 || steps[3].Int != 0 || steps[4].Int != 0 ||
		string(steps[6].Text) != string(appendText(nil, newElement(tx.ID, 0))) || uint64(steps[7].Int) != tx.Ops[1].Object {
		t.Errorf("the steps have %v", steps)
	}
	if !tx.Ops[0].Observed || tx.Ops[0].Value != 1 || len(tx.Elements) != 1 {
		t.Errorf("the read has %+v %v", tx.Ops[0], tx.Elements)
	}
	attempt(history.Committed, 0, m.mixed[2])
	lost = true
	attempt(history.Rejected, noSuchList, m.mixed[2])
	lost = false
	attempt(history.Committed, 0, m.insert, m.mixed[2])
}

func TestProceduresRefuse(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"operations is 17, and this database has a stored procedure for each number of operations up to 16": func(c *Config) { c.Operations = 17 },
		"access is rows, and a database of stored procedures has its lists under their keys alone":          func(c *Config) { c.Access = Rows },
		"mode pipelined needs transactions of statements":                                                   func(c *Config) { c.Mode = "pipelined" },
	} {
		c := testConfig(2)
		change(c)
		if _, err := newProcedureModel(nil, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
