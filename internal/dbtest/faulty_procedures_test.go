package dbtest

import (
	"context"
	"testing"

	"stroppy/internal/db"
)

type procedureDatabase struct {
	db.Procedures
	in *Injector
}

// ProcedureSession implements db.Procedures.
func (d *procedureDatabase) ProcedureSession(ctx context.Context, options db.SessionOptions) (db.ProcedureSession, error) {
	inner, err := d.Procedures.ProcedureSession(ctx, options)
	if err != nil {
		return nil, err
	}
	return &procedureSession{ProcedureSession: inner, line: d.in.line(func(context.Context) {})}, nil
}

type procedureSession struct {
	db.ProcedureSession // the one inside
	line
}

func (s *procedureSession) Call(ctx context.Context, procedure *db.Procedure, args []db.Value) (result *db.Result, err error) {
	err = s.commit(ctx, func() error {
		var err error
		result, err = s.ProcedureSession.Call(ctx, procedure, args)
		return err
	})
	return result, err
}

func (s *procedureSession) Reset(ctx context.Context) error {
	return s.do(ctx, Reset, func() error { return s.ProcedureSession.Reset(ctx) })
}

// counter is a database of stored procedures that counts the calls it gets.
type counter struct {
	db.Procedures
	calls, resets int
}

func (c *counter) ProcedureSession(context.Context, db.SessionOptions) (db.ProcedureSession, error) {
	return &counterSession{c}, nil
}

type counterSession struct{ *counter }

func (s *counterSession) Call(context.Context, *db.Procedure, []db.Value) (*db.Result, error) {
	s.calls++
	return &db.Result{}, nil
}
func (s *counterSession) Reset(context.Context) error { s.resets++; return nil }
func (s *counterSession) Close() error                { return nil }

// TestProcedureCalls: a call is a commit, and after a lost one the session is of no
// use until it is reset.
func TestProcedureCalls(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		class   db.Class
		arrived int
	}{
		"seed 1; lose commit 1":   {db.Unknown, 0},
		"seed 1; cut commit 1":    {db.Unknown, 1},
		"seed 1; refuse commit 1": {db.Aborted, 0},
	} {
		t.Run(script, func(t *testing.T) {
			rules, err := parseScript(script)
			if err != nil {
				t.Fatal(err)
			}
			in, c := newInjector(rules), &counter{}
			s, err := in.Wrap(c).(db.Procedures).ProcedureSession(t.Context(), db.SessionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.Call(t.Context(), nil, nil); err == nil || db.ClassOf(err) != want.class || c.calls != want.arrived {
				t.Fatalf("%v after %d calls", err, c.calls)
			}
			in.Enable(false)
			if want.class == db.Unknown {
				if _, err = s.Call(t.Context(), nil, nil); db.ClassOf(err) != db.Unavailable {
					t.Errorf("before a reset: %v", err)
				}
				if err := s.Reset(t.Context()); err != nil || c.resets != 1 {
					t.Errorf("%d resets, %v", c.resets, err)
				}
			}
			if _, err = s.Call(t.Context(), nil, nil); err != nil || c.calls != want.arrived+1 {
				t.Errorf("%v after %d calls", err, c.calls)
			}
		})
	}
}
