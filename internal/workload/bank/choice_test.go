package bank

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"stroppy/internal/history"
)

func testConfig() Config {
	c := DefaultConfig()
	c.Accounts, c.Seed, c.Clients = 1000, 11, 4
	c.PayrollShare, c.JointShare, c.InquiryShare, c.LargeShare = 0.2, 0.2, 0.2, 0.1
	return c
}

func testChooser(c Config, client uint64) *chooser {
	return newChooser(&c, newFormula(c.Seed), c.Accounts, 1, client)
}

func TestUniformChoicePassesChiSquareTest(t *testing.T) {
	for _, accounts := range []uint64{4, 7, 1000} {
		c := testConfig()
		c.Accounts = accounts
		h := testChooser(c, 0)
		counts, expected := make([]float64, accounts), make([]float64, accounts)
		draws := 200 * accounts
		for range draws {
			counts[h.account()]++
		}
		for i := range expected {
			expected[i] = 200
		}
		x := stat.ChiSquare(counts, expected)
		if p := (distuv.ChiSquared{K: float64(accounts - 1)}).Survival(x); p < 1e-6 {
			t.Errorf("%d accounts: chi-square is %.0f, of which the probability is %.2g", accounts, x, p)
		}
	}
}

func TestZipfianHotAccountsAreScattered(t *testing.T) {
	c := testConfig()
	c.Accounts, c.Zipfian = 100, true
	h := testChooser(c, 0)
	counts := map[uint64]int{}
	for range 100_000 {
		n := h.account()
		if n >= c.Accounts {
			t.Fatalf("account %d of %d", n, c.Accounts)
		}
		counts[n]++
	}
	if len(counts) != int(c.Accounts) {
		t.Errorf("%d of %d accounts were ever chosen", len(counts), c.Accounts)
	}
	first, best := uint64(0), 0
	for n, count := range counts {
		if count > best {
			first, best = n, count
		}
	}
	if best < 15_000 || best > 25_000 {
		t.Errorf("the most frequent account came %d times of 100,000, want about 19,700", best)
	}
	other := c
	other.Seed = 12
	g := testChooser(other, 0)
	same := 0
	for range 1000 {
		if g.account() == first {
			same++
		}
	}
	if same > 150 {
		t.Errorf("another seed has the same favourite account %d", first)
	}
}

// prepared returns what a client prepares, with operations of its own.
func prepared(h *chooser, n int) []history.Transaction {
	var out []history.Transaction
	var tx history.Transaction
	for range n {
		h.Next(&tx)
		kept := tx
		kept.Ops = slices.Clone(tx.Ops)
		out = append(out, kept)
	}
	return out
}

func TestSeedRunAndClientDetermineTransactions(t *testing.T) {
	equal := func(a, b []history.Transaction) bool {
		return slices.EqualFunc(a, b, func(a, b history.Transaction) bool {
			return a.Kind == b.Kind && slices.Equal(a.Ops, b.Ops)
		})
	}
	for _, zipfian := range []bool{false, true} {
		c := testConfig()
		c.Zipfian = zipfian
		want := prepared(testChooser(c, 3), 1000)
		if !equal(prepared(testChooser(c, 3), 1000), want) {
			t.Error("the same client prepares other transactions the second time")
		}
		if equal(prepared(testChooser(c, 2), 1000), want) {
			t.Error("two clients prepare the same transactions")
		}
		if equal(prepared(newChooser(&c, newFormula(c.Seed), c.Accounts, 2, 3), 1000), want) {
			t.Error("two runs prepare the same transactions")
		}
		if want[0].ID != history.NewID(1, 3, 1) || want[999].ID != history.NewID(1, 3, 1000) {
			t.Errorf("the ids run from %v to %v", want[0].ID, want[999].ID)
		}
	}
}

func TestPreparedTransactionsFollowBankRules(t *testing.T) {
	for _, zipfian := range []bool{false, true} {
		for _, accounts := range []uint64{4, 100, 1000, 100_000} {
			c := testConfig()
			c.Accounts, c.Zipfian, c.PayrollLegs = accounts, zipfian, 3
			c.ZipfExponent = 2
			f := newFormula(c.Seed)
			kinds := map[history.Kind]int{}
			large := 0
			for _, tx := range prepared(testChooser(c, 1), 5000) {
				kinds[tx.Kind]++
				checkPrepared(t, &f, &c, &tx)
				if payer, _ := jointOps(&tx); tx.Kind == transfer && -payer.Amount >= f.opening(payer.Object) {
					large++
				}
			}
			if len(kinds) != 4 || large == 0 {
				t.Errorf("%d accounts: kinds %v, %d large", accounts, kinds, large)
			}
			for _, kind := range []history.Kind{payroll, joint, inquiry} {
				if n := kinds[kind]; n < 800 || n > 1200 {
					t.Errorf("%d of 5000 are %v, want about 1000", n, kind)
				}
			}
		}
	}
}

func checkPrepared(t *testing.T, f *formula, c *Config, tx *history.Transaction) {
	t.Helper()
	var sum int64
	writes, reads := 0, 0
	seen := map[uint64]bool{}
	for i, op := range tx.Ops {
		sum += op.Amount
		if op.Object >= c.Accounts || seen[op.Object] {
			t.Fatalf("%v has account %d, which is not there or twice", tx.Kind, op.Object)
		}
		seen[op.Object] = true
		if op.Write {
			writes++
		} else {
			reads++
		}
		if op.Write != (op.Amount != 0) || op.Observed {
			t.Fatalf("%v has the operation %+v", tx.Kind, op)
		}
		if i > 0 && f.key(tx.Ops[i-1].Object) >= f.key(op.Object) {
			t.Fatalf("%v is not in the order of keys", tx.Kind)
		}
	}
	if sum != 0 {
		t.Fatalf("the legs of a %v sum to %d", tx.Kind, sum)
	}
	want := map[history.Kind][2]int{
		transfer: {2, 0}, payroll: {c.PayrollLegs + 1, 0}, joint: {2, 1}, inquiry: {0, 2},
	}[tx.Kind]
	if writes != want[0] || reads != want[1] {
		t.Fatalf("a %v has %d writes and %d reads", tx.Kind, writes, reads)
	}
	switch payer, other := jointOps(tx); tx.Kind {
	case payroll:
		if !corporate(payer.Object) {
			t.Fatalf("account %d pays a payroll and is not corporate", payer.Object)
		}
	case joint:
		if other.Object != sibling(payer.Object) {
			t.Fatalf("a joint transfer of %d reads %d", payer.Object, other.Object)
		}
	}
}

func TestRandomLockOrderLeavesAccountsUnsorted(t *testing.T) {
	c := testConfig()
	c.LockOrder = RandomOrder
	f := newFormula(c.Seed)
	unordered := 0
	for _, tx := range prepared(testChooser(c, 1), 1000) {
		if !slices.IsSortedFunc(tx.Ops, func(a, b history.Op) int { return int(f.key(a.Object)>>1) - int(f.key(b.Object)>>1) }) {
			unordered++
		}
	}
	if unordered < 400 {
		t.Errorf("%d of 1000 transactions are out of order", unordered)
	}
}

func TestInquiriesReadTheClientsOwnTransfers(t *testing.T) {
	c := testConfig()
	own, pairs := 0, 0
	var last [2]uint64
	for _, tx := range prepared(testChooser(c, 1), 5000) {
		switch tx.Kind {
		case inquiry:
			a, b := tx.Ops[0].Object, tx.Ops[1].Object
			switch {
			case [2]uint64{min(a, b), max(a, b)} == last:
				own++
			case a == sibling(b):
				pairs++
			default:
				t.Fatalf("an inquiry reads %d and %d", a, b)
			}
		case transfer, joint:
			var ends []uint64
			for _, op := range tx.Ops {
				if op.Write {
					ends = append(ends, op.Object)
				}
			}
			last = [2]uint64{slices.Min(ends), slices.Max(ends)}
		}
	}
	if own < 300 || pairs < 300 {
		t.Errorf("%d inquiries of own transfers, %d of pairs", own, pairs)
	}
}

func TestPrepareAllocatesNothing(t *testing.T) {
	for _, zipfian := range []bool{false, true} {
		c := testConfig()
		c.Zipfian = zipfian
		h := testChooser(c, 0)
		tx := history.Transaction{Ops: make([]history.Op, 0, 16)}
		if n := testing.AllocsPerRun(1000, func() { h.Next(&tx) }); n != 0 {
			t.Errorf("zipfian %v: %v allocations", zipfian, n)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	for _, bench := range []struct {
		name     string
		zipfian  bool
		transfer bool
	}{{"transfers", false, true}, {"default mix", false, false}, {"default mix zipfian", true, false}} {
		b.Run(bench.name, func(b *testing.B) {
			c := DefaultConfig()
			c.Accounts, c.Seed, c.Zipfian = 50_000_000, 1, bench.zipfian
			if bench.transfer {
				c.PayrollShare, c.JointShare, c.InquiryShare = 0, 0, 0
			}
			h := testChooser(c, 0)
			var tx history.Transaction
			b.ReportAllocs()
			for b.Loop() {
				h.Next(&tx)
			}
		})
	}
}
