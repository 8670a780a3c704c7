package db

import (
	"errors"
	"fmt"
	"testing"
)

// TestErrorClassificationAllocatesNothing checks that ClassOf allocates nothing, because clients call it at the
// end of every transaction.
func TestErrorClassificationAllocatesNothing(t *testing.T) {
	constraint := &Error{Class: Constraint, Constraint: UniqueKey, Op: "commit", Err: errors.New("there already")}
	for _, x := range []struct {
		err   error
		class Class
		kind  ConstraintKind
	}{
		{nil, Unknown, 0},
		{errors.New("no error of a database"), Unknown, 0},
		{constraint, Constraint, UniqueKey},
		{fmt.Errorf("wrapped: %w", constraint), Constraint, UniqueKey},
		{&Error{Class: Aborted, Constraint: UniqueKey, Op: "commit", Err: errors.New("conflict")}, Aborted, 0},
	} {
		if class, kind := ClassOf(x.err), ConstraintOf(x.err); class != x.class || kind != x.kind {
			t.Errorf("%v: %v and %d, want %v and %d", x.err, class, kind, x.class, x.kind)
		}
		if n := testing.AllocsPerRun(100, func() { ClassOf(x.err); ConstraintOf(x.err) }); n > 0 {
			t.Errorf("%v: %v allocations", x.err, n)
		}
	}
}
