package totals

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// These constants are the numbers of rows in the tests.
const (
	testBranches = 2
	testTellers  = 3
	testAccounts = 5
	testRows     = testBranches + testTellers + testAccounts
)

// counter is a tpcb bank driven by several clients, with the records of a correct database. Tests then
// falsify the record.
type counter struct {
	checktest.History
	checktest.End
	random   *rand.Rand
	now      int64
	versions bool
}

// groupChecks lists the names of the checks in order.
var groupChecks = []string{check.Total, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}

func newCounter(seed uint64) *counter {
	c := &counter{History: checktest.History{Run: 1}, random: rand.New(rand.NewPCG(seed, 1))}
	for n := range testRows {
		c.ObjectRows = append(c.ObjectRows, history.Object{N: uint64(n)})
	}
	return c
}

// apply applies a transaction, and adds its history row if post is set.
func (c *counter) apply(tx *history.Transaction, post bool) {
	for i := range tx.Ops {
		op, row := &tx.Ops[i], &c.ObjectRows[tx.Ops[i].Object]
		if op.Observed = i == 0; op.Observed {
			op.Value = row.Value
		}
		leg := history.Row{Transaction: tx.ID, Number: uint32(i), Object: op.Object, Amount: op.Amount}
		if c.versions {
			op.Observed, op.Value, op.Version, op.Writer = true, row.Value, row.Version, row.Writer
			row.Version, row.Writer, leg.Version = row.Version+1, tx.ID, row.Version+1
		}
		row.Value += op.Amount
		if post {
			c.LedgerRows = append(c.LedgerRows, leg)
		}
	}
}

// step makes the next transaction, which overlaps with the previous ones.
func (c *counter) step(outcome history.Outcome, applied, post bool) *history.Transaction {
	c.now += 10
	delta := int64(c.random.IntN(11)) - 5
	tx := history.Transaction{
		ID: history.NewID(c.Run, 0, uint64(len(c.Txns)+1)), Kind: kindProfile, Outcome: outcome, Attempts: 1,
		Due: c.now, Sent: c.now, Try: c.now, End: c.now + 5 + int64(c.random.IntN(30)),
		Ops: []history.Op{
			{Object: testBranches + testTellers + uint64(c.random.IntN(testAccounts)), Write: true, Amount: delta},
			{Object: testBranches + uint64(c.random.IntN(testTellers)), Write: true, Amount: delta},
			{Object: uint64(c.random.IntN(testBranches)), Write: true, Amount: delta},
		},
	}
	if applied {
		c.apply(&tx, post)
	}
	if outcome != history.Committed {
		for i := range tx.Ops {
			op := &tx.Ops[i]
			op.Observed, op.Value, op.Version, op.Writer = false, 0, 0, 0
		}
	}
	c.Txns = append(c.Txns, tx)
	return &c.Txns[len(c.Txns)-1]
}

func (c *counter) input() GroupsInput {
	return GroupsInput{
		Input: check.Input{
			Expect: isolation.Serializable, Name: func(n uint64) string { return fmt.Sprintf("#%d", n) },
			History: []check.Source{&c.History}, End: &c.End,
		},
		Words:    check.Words{One: "transaction", Book: "history", Part: "row", Before: "", Amount: func(n int64) string { return fmt.Sprint(n) }},
		Groups:   []Group{{"branches", testBranches}, {"tellers", testTellers}, {"accounts", testAccounts}},
		Versions: c.versions,
	}

}

// drive makes n transactions. Some are aborted; some have unknown outcomes, applied or not.
func (c *counter) drive(n int, bare bool) {
	for range n {
		switch c.random.IntN(12) {
		case 0:
			c.step(history.Aborted, false, false)
		case 1:
			if !bare {
				c.step(history.Unknown, c.random.IntN(2) == 0, true)
			}
		default:
			c.step(history.Committed, true, !bare)
		}
	}
}

func tpcbChecked(t *testing.T, in GroupsInput) map[string]checktest.Reported {
	t.Helper()
	results, err := Groups(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return checktest.ByName(checktest.Worded(results, in.Words))
}

func TestCorrectTPCBIsValid(t *testing.T) {
	for seed := range uint64(200) {
		c := newCounter(seed)
		c.versions = seed%2 == 1
		c.drive(40, false)
		results := tpcbChecked(t, c.input())
		for _, about := range groupChecks {
			if name, r := about, results[about]; r.Status != check.Valid {
				t.Errorf("seed %d: %s is %v: %s", seed, name, r.Status, r.Detail)
			}
		}
	}
}

// lastOf returns the last transaction with an outcome that changed a balance.
func (c *counter) lastOf(outcome history.Outcome) *history.Transaction {
	for i := len(c.Txns) - 1; i >= 0; i-- {
		if tx := &c.Txns[i]; tx.Outcome == outcome && tx.Ops[0].Amount != 0 {
			return tx
		}
	}
	return nil
}

// unpost removes a transaction's row from the history.
func (c *counter) unpost(id history.ID) {
	c.LedgerRows = slices.DeleteFunc(c.LedgerRows, func(l history.Row) bool { return l.Transaction == id })
}

func (c *counter) move(tx *history.Transaction, op int, amount int64) {
	c.ObjectRows[tx.Ops[op].Object].Value += amount
}

// tpcbMutants holds the errors of a database and the check that must detect each.
var tpcbMutants = []struct {
	name, check string
	bend        func(c *counter)
}{
	{"an acknowledged transaction vanished", check.Durable, func(c *counter) {
		tx := c.lastOf(history.Committed)
		c.unpost(tx.ID)
		for i := range tx.Ops {
			c.move(tx, i, -tx.Ops[i].Amount)
		}
	}},
	{"the amounts stayed and the row of the history vanished", check.Ledger, func(c *counter) { c.unpost(c.lastOf(history.Committed).ID) }},
	{"an account missed its amount", check.Ledger, func(c *counter) { tx := c.lastOf(history.Committed); c.move(tx, 0, -tx.Ops[0].Amount) }},
	{"a teller missed its amount", check.Ledger, func(c *counter) { tx := c.lastOf(history.Committed); c.move(tx, 1, -tx.Ops[1].Amount) }},
	{"a branch missed its amount", check.Total, func(c *counter) { tx := c.lastOf(history.Committed); c.move(tx, 2, -tx.Ops[2].Amount) }},
	{"a branch got it twice", check.Ledger, func(c *counter) { tx := c.lastOf(history.Committed); c.move(tx, 2, tx.Ops[2].Amount) }},
	{"another teller got it", check.Ledger, func(c *counter) {
		tx := c.lastOf(history.Committed)
		c.move(tx, 1, -tx.Ops[1].Amount)
		c.ObjectRows[testBranches+(tx.Ops[1].Object-testBranches+1)%testTellers].Value += tx.Ops[1].Amount
	}},
	{"applied twice", check.ExactlyOnce, func(c *counter) { c.apply(c.lastOf(history.Committed), true) }},
	{"an aborted one was applied", check.NoGhost, func(c *counter) { c.apply(c.lastOf(history.Aborted), true) }},
	{"one that nobody sent", check.NoGhost, func(c *counter) {
		tx := *c.lastOf(history.Committed)
		tx.ID, tx.Ops = history.NewID(1, 7, 1), slices.Clone(tx.Ops)
		c.apply(&tx, true)
	}},
	{"another amount than was sent", check.Durable, func(c *counter) {
		tx := *c.lastOf(history.Committed)
		c.unpost(tx.ID)
		tx.Ops = slices.Clone(tx.Ops)
		for i := range tx.Ops {
			c.move(&tx, i, -tx.Ops[i].Amount)
			tx.Ops[i].Amount += 100
		}
		c.apply(&tx, true)
	}},
	{"phantom money on all three", check.Ledger, func(c *counter) {
		for _, n := range []int{0, testBranches, testRows - 1} {
			c.ObjectRows[n].Value += 7
		}
	}},
	{"a row is gone", check.Ledger, func(c *counter) { c.ObjectRows = c.ObjectRows[:testRows-1] }},
	{"a row is there twice", check.Ledger, func(c *counter) { c.ObjectRows[testRows-1] = c.ObjectRows[0] }},
	{"a row that no load made", check.Ledger, func(c *counter) { c.UnexpectedRows = append(c.UnexpectedRows, "account 99") }},
	{"a stale balance was read", check.Serializable, func(c *counter) { c.lastOf(history.Committed).Ops[0].Value -= 1000 }},
}

func TestTPCBMutantsAreDetected(t *testing.T) {
	for _, m := range tpcbMutants {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(20) {
				c := newCounter(seed)
				c.versions = seed%2 == 1
				c.drive(60, false)
				m.bend(c)
				results := tpcbChecked(t, c.input())
				if r := results[m.check]; r.Status != check.Invalid || r.Detail == "" {
					t.Errorf("seed %d: %s is %v: %s", seed, m.check, r.Status, r.Detail)
				}
			}
		})
	}
}

// TestTPCBSpeaksOfTransactions checks that verdicts about tpcb use its nouns, also in checks shared with the
// bank: transactions, the history, and rows that hold no money.
func TestTPCBSpeaksOfTransactions(t *testing.T) {
	bends := map[string]func(c *counter){
		"nothing":    func(*counter) {},
		"lost":       func(c *counter) { c.unpost(c.lastOf(history.Committed).ID) },
		"in part":    func(c *counter) { c.LedgerRows = c.LedgerRows[:len(c.LedgerRows)-1] },
		"twice":      func(c *counter) { c.LedgerRows = append(c.LedgerRows, c.LedgerRows[len(c.LedgerRows)-3:]...) },
		"ghost":      func(c *counter) { c.apply(c.lastOf(history.Aborted), true) },
		"never sent": func(c *counter) { c.Txns = slices.Delete(c.Txns, 0, 1) },
		"not given": func(c *counter) {
			tx := *c.lastOf(history.Committed)
			tx.ID = history.NewID(9, 0, 1)
			c.apply(&tx, true)
		},
		"aborted read":  func(c *counter) { c.step(history.Aborted, true, false); c.drive(20, false) },
		"unknown read":  func(c *counter) { c.step(history.Unknown, true, false); c.drive(20, false) },
		"garbage read":  func(c *counter) { c.lastOf(history.Committed).Ops[0].Value -= 1000 },
		"nobody's read": func(c *counter) { c.lastOf(history.Committed).Ops[0].Writer = history.NewID(1, 7, 1) },
		"inversion":     func(c *counter) { tx := c.lastOf(history.Committed); tx.Due, tx.Sent, tx.Try, tx.End = 0, 0, 0, 1 },
		"fork": func(c *counter) {
			l := &c.LedgerRows[len(c.LedgerRows)-1]
			l.Version--
			c.ObjectRows[l.Object].Version--
		},
		"wrong version": func(c *counter) { c.LedgerRows[len(c.LedgerRows)-1].Version-- },
		"cycle": func(c *counter) { // opposite orders on two rows
			for i, l := range c.LedgerRows {
				j := slices.IndexFunc(c.LedgerRows, func(x history.Row) bool { return x.Object == l.Object && x.Version == l.Version+1 })
				if l.Version > 0 && j >= 0 {
					c.LedgerRows[i].Version, c.LedgerRows[j].Version = c.LedgerRows[j].Version, c.LedgerRows[i].Version
					return
				}
			}
		},
		"outside":     func(c *counter) { c.LedgerRows[len(c.LedgerRows)-1].Version = 1 << 40 },
		"other last":  func(c *counter) { c.ObjectRows[0].Writer = history.NewID(1, 0, 1) },
		"no such row": func(c *counter) { c.LedgerRows[len(c.LedgerRows)-1].Object = testRows },
		"version":     func(c *counter) { c.ObjectRows[0].Version++ },
	}
	var all []string
	for name, bend := range bends {
		for _, versions := range []bool{false, true} {
			c := newCounter(7)
			c.versions = versions
			c.drive(40, false)
			c.step(history.Committed, true, true)
			bend(c)
			in, said := c.input(), []string{}
			in.Name = func(n uint64) string { return fmt.Sprintf("row #%d", n) }
			in.OnViolation = func(v check.Violation) { said = append(said, text.Speaker{Words: in.Words}.Clause(v.Fact)) }
			for _, r := range tpcbChecked(t, in) {
				said = append(said, r.Detail)
			}
			for _, text := range said {
				for _, word := range []string{"ransfer", "ledger", "leg ", "ccount row", "0.0", "TPC-B"} {
					if strings.Contains(text, word) {
						t.Errorf("%s, versions %v: the text contains %s: %s", name, versions, word, text)
					}
				}
			}
			if all := strings.Join(said, " "); !strings.Contains(all, "ransaction") || !strings.Contains(all, "history") {
				t.Errorf("%s, versions %v: the text does not mention transactions or the history: %s", name, versions, all)
			}
			all = append(all, said...)
		}
	}
	for _, text := range []string{
		"which is of unknown outcome and is not in the history", "which was aborted and is not in the history",
		"where opening balance and history make", "which no client sent", "both made version", " and transaction ", "which transaction ",
		" are both in the history as the maker of version ", "and the history has no such row", "has a row in the history with a version", "has a row in the history on row #", " history rows.",
	} {
		if !slices.ContainsFunc(all, func(said string) bool { return strings.Contains(said, text) }) {
			t.Errorf("nothing says %q", text)
		}
	}
}

// TestTPCBWithoutHistory checks that acknowledged amounts are compared with every row.
func TestTPCBWithoutHistory(t *testing.T) {
	for seed := range uint64(20) {
		c := newCounter(seed)
		c.drive(60, true)
		mark := history.Row{Transaction: history.NewID(1, 0, 0), Mark: history.Unkept}
		c.LedgerRows = []history.Row{mark}
		in := c.input()
		in.Bare = []uint64{1}
		results := tpcbChecked(t, in)
		for _, name := range []string{check.Total, check.Ledger, check.Serializable, check.Strict} {
			if r := results[name]; r.Status != check.Valid {
				t.Errorf("%s is %v: %s", name, r.Status, r.Detail)
			}
		}
		if len(results) != 4 {
			t.Errorf("there are %d checks where no id is kept", len(results))
		}
		for _, m := range tpcbMutants {
			if !strings.HasSuffix(m.name, "missed its amount") && !strings.HasPrefix(m.name, "phantom") && m.check != check.Serializable {
				continue
			}
			bent := newCounter(seed)
			bent.drive(60, true)
			bent.LedgerRows = []history.Row{mark}
			m.bend(bent)
			in.History, in.End = []check.Source{&bent.History}, &bent.End
			want := m.check
			if want == check.Total {
				want = check.Ledger
			}
			if r := tpcbChecked(t, in)[want]; r.Status != check.Invalid {
				t.Errorf("seed %d, %s: %s is %v: %s", seed, m.name, want, r.Status, r.Detail)
			}
		}
		c.step(history.Unknown, seed%2 == 0, false)
		in.History, in.End = []check.Source{&c.History}, &c.End
		for _, name := range []string{check.Total, check.Ledger} {
			if r := tpcbChecked(t, in)[name]; r.Status != check.Unknown || !r.Required || r.Detail == "" {
				t.Errorf("with an unknown outcome %s is %v: %s", name, r.Status, r.Detail)
			}
		}
		// A violation that no unknown outcome explains remains a violation.
		tx := c.Txns[len(c.Txns)-1]
		other := testBranches + testTellers + (tx.Ops[0].Object-testBranches-testTellers+1)%testAccounts
		c.ObjectRows[other].Value += 3
		if r := tpcbChecked(t, in)[check.Ledger]; r.Status != check.Invalid {
			t.Errorf("a row that no unknown outcome touches: ledger is %v: %s", r.Status, r.Detail)
		}
	}
}

// TestTPCBUnknownInputsAreUndecided checks that unknown inputs are reported and make the verdict unknown.
func TestTPCBUnknownInputsAreUndecided(t *testing.T) {
	for name, bend := range map[string]func(c *counter, in *GroupsInput){
		"no end state": func(_ *counter, in *GroupsInput) { in.End = nil },
		"damage":       func(c *counter, _ *GroupsInput) { c.History.Err = fmt.Errorf("a bad block") },
		"a run without history whose recording is not given": func(c *counter, _ *GroupsInput) {
			c.LedgerRows = append(c.LedgerRows, history.Row{Transaction: history.NewID(2, 0, 0), Mark: history.Unkept})
		},
		"somebody emptied the history": func(_ *counter, in *GroupsInput) { in.Unexpected = 3 },
		"a foreign run": func(c *counter, _ *GroupsInput) {
			tx := c.Txns[0]
			tx.ID, tx.Ops = history.NewID(3, 0, 1), slices.Clone(tx.Ops)
			c.apply(&tx, true)
		},
		"the recording was cut off": func(c *counter, _ *GroupsInput) { c.Incomplete = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(5)
			c.drive(30, false)
			in := c.input()
			bend(c, &in)
			results, err := Groups(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if v := check.Verdict(results); v != check.Unknown {
				t.Errorf("the verdict is %v: %+v", v, results)
			}
		})
	}
}

// TestTPCBOtherPrograms checks that history rows of other programs explain balances, and that earlier
// balances are openings.
func TestTPCBOtherPrograms(t *testing.T) {
	c := newCounter(9)
	for n := range testRows {
		c.ObjectRows[n].Value = int64(100 * n)
		c.LedgerRows = append(c.LedgerRows, history.Row{Mark: history.Opening, Object: uint64(n), Amount: int64(100 * n)})
	}
	foreign := history.Transaction{Ops: []history.Op{{Object: 7, Amount: 4}, {Object: 3, Amount: 4}, {Object: 1, Amount: 4}}}
	c.apply(&foreign, true)
	c.drive(40, false)
	in := c.input()
	in.Unexpected = 1
	for name, r := range tpcbChecked(t, in) {
		if r.Status != check.Valid {
			t.Errorf("%s is %v: %s", name, r.Status, r.Detail)
		}
	}
	c.apply(&foreign, true)
	results := tpcbChecked(t, in)
	if r := results[check.Ledger]; r.Status != check.Valid {
		t.Errorf("ledger is %v although the history explains all: %s", r.Status, r.Detail)
	}
	if r := results[check.Serializable]; r.Status != check.Unknown {
		t.Errorf("serializable is %v although somebody else worked beside: %s", r.Status, r.Detail)
	}
	c.ObjectRows[7].Value++
	if r := tpcbChecked(t, in)[check.Ledger]; r.Status != check.Unknown {
		t.Errorf("ledger is %v although somebody else worked beside: %s", r.Status, r.Detail)
	}
	in.Unexpected = 2
	if r := tpcbChecked(t, in)[check.Ledger]; r.Status != check.Invalid {
		t.Errorf("ledger is %v although nobody else worked beside: %s", r.Status, r.Detail)
	}
}

// TestPathsAgainstAllOrders compares the search for a path with all permutations.
func TestPathsAgainstAllOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	seen := map[string]int{}
	for range 20000 {
		list, opening := randomEdges(random)
		path, timely := allOrders(list, opening)
		s := search{list: list, at: opening}
		got := s.run()
		if (got == searchFound) != timely {
			t.Fatalf("the search came to %v, and an order that agrees with real time is there: %v\n%+v from %d", got, timely, list, opening)
		}
		seen[fmt.Sprint("timely ", timely)]++
		if slices.ContainsFunc(list, func(e transition) bool { return !e.known }) {
			for i := range list {
				list[i].begin = math.MinInt64
			}
			whenever := search{list: list, at: opening}
			if (whenever.run() == searchFound) != path {
				t.Fatalf("without times the search did not find what is there: %v\n%+v from %d", path, list, opening)
			}
			continue
		}
		if _, ok := eulerian(list, opening); ok != path {
			t.Fatalf("a path is found: %v, and there is one: %v\n%+v from %d", ok, path, list, opening)
		}
		seen[fmt.Sprint("path ", path)]++
	}
	for _, what := range []string{"timely true", "timely false", "path true", "path false"} {
		if seen[what] < 500 {
			t.Errorf("%s was seen %d times of 20000, which tries too little", what, seen[what])
		}
	}
}

// randomEdges returns a few transactions on one account, mostly correct and sometimes falsified.
func randomEdges(random *rand.Rand) (list []transition, opening int64) {
	opening = int64(random.IntN(3))
	balance, now := opening, int64(0)
	for i := range 1 + random.IntN(6) {
		amount := int64(random.IntN(5)) - 2
		now += int64(random.IntN(10))
		e := transition{txn: uint32(i), known: random.IntN(8) > 0, before: balance, amount: amount, begin: now, end: now + int64(random.IntN(20))}
		balance += amount
		list = append(list, e)
	}
	switch e := &list[random.IntN(len(list))]; random.IntN(4) {
	case 0:
		e.before += int64(random.IntN(3)) - 1
	case 1:
		e.begin += 30
		e.end += 30
	case 2:
		e.amount++
	}
	slices.SortFunc(list, func(a, b transition) int { return int(a.end - b.end) })
	return list, opening
}

// allOrders reports, by trying every order, whether one explains all reads, and whether such an order agrees
// with real time.
func allOrders(list []transition, opening int64) (path, timely bool) {
	used := make([]bool, len(list))
	var walk func(balance int64, latest int64, inTime bool, left int)
	walk = func(balance, latest int64, inTime bool, left int) {
		if left == 0 {
			path, timely = true, timely || inTime
			return
		}
		for i, e := range list {
			if used[i] || e.known && e.before != balance {
				continue
			}
			used[i] = true
			walk(balance+e.amount, max(latest, e.begin), inTime && e.end >= latest, left-1)
			used[i] = false
		}
	}
	walk(opening, 0, true, len(list))
	return path, timely
}
