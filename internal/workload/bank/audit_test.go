package bank

import (
	"context"
	"errors"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// shown is an audit session that finds these accounts, and then fails as it is asked to.
type shown struct {
	accounts []uint64
	err      error
}

func (s *shown) all(ctx context.Context, a *auditor, tx *history.Transaction) error {
	return s.sample(ctx, a, tx)
}

func (s *shown) sample(_ context.Context, a *auditor, tx *history.Transaction) error {
	for _, n := range s.accounts {
		a.add(tx, a.formula.key(n), workload.State{Balance: 5, Version: int64(n)})
	}
	return s.err
}

func (*shown) Reset(context.Context) error { return nil }
func (*shown) Close() error                { return nil }

// TestAuditRecordsEachAccountRead checks that an audit has one operation for each account, and one more for each
// account that was read again.
func TestAuditRecordsEachAccountRead(t *testing.T) {
	c := testConfig()
	c.Accounts = 4
	for _, test := range []struct {
		name      string
		size      uint64
		session   shown
		ops, seen int
	}{
		{"all", 4, shown{accounts: []uint64{3, 0, 2, 1}}, 4, 4},
		{"one is missing", 4, shown{accounts: []uint64{3, 0, 1}}, 4, 3},
		{"one comes twice", 4, shown{accounts: []uint64{3, 0, 2, 1, 2}}, 5, 5},
		{"unexpected", 4, shown{accounts: []uint64{3, 0, 2, 1, 4, 99}}, 4, 4},
		{"a sample", 3, shown{accounts: []uint64{0, 1, 2, 3}}, 3, 3},
		{"a failure", 4, shown{accounts: []uint64{0, 1}, err: errors.New("cut off")}, 0, 0},
	} {
		a := &auditor{chooser: testChooser(c, 0), auditSession: &test.session, size: test.size}
		var tx history.Transaction
		for a.Next(&tx); a.sequence < 50; a.Next(&tx) {
			for range 2 { // a try again forgets the one before
				if err := a.Attempt(t.Context(), &tx); err != test.session.err || (err == nil) != (tx.Outcome == history.Committed) {
					t.Fatalf("%s: %v, %v", test.name, err, tx.Outcome)
				}
			}
			seen := 0
			for _, op := range tx.Ops {
				if op.Object >= c.Accounts || op.Observed && op.Version != op.Object {
					t.Errorf("%s: it saw %+v", test.name, op)
				}
				if op.Observed {
					seen++
				}
			}
			if len(tx.Ops) != test.ops || seen != test.seen {
				t.Errorf("%s: %d of %d operations saw an account: %+v", test.name, seen, len(tx.Ops), tx.Ops)
			}
		}
	}
}
