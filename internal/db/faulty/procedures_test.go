package faulty

import (
	"context"
	"testing"

	"stroppy/internal/db"
)

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
	for script, want := range map[string]struct {
		class   db.Class
		arrived int
	}{
		"seed 1; lose commit 1":   {db.Unknown, 0},
		"seed 1; cut commit 1":    {db.Unknown, 1},
		"seed 1; refuse commit 1": {db.Aborted, 0},
	} {
		t.Run(script, func(t *testing.T) {
			rules, err := Parse(script)
			if err != nil {
				t.Fatal(err)
			}
			in, c := New(rules), &counter{}
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
