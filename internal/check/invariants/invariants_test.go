package invariants

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
)

func TestParseTakesEveryForm(t *testing.T) {
	const lines = "a b: unchanged: SELECT 1\nrows:EMPTY:SELECT ':x: 0: y'\n  WHERE a = 1;\nn: -1.50: SELECT -1.5\n" +
		"s: sum(:délta): SELECT 2\ne: equal: SELECT 1;\nSELECT 2"
	list, err := Parse(lines)
	if err != nil || len(list) != 5 {
		t.Fatalf("%v, %d invariants", err, len(list))
	}
	kinds := []Kind{Unchanged, Empty, Value, Sum, Equal}
	for i, v := range list {
		if v.Expect.Kind != kinds[i] {
			t.Errorf("%s expects %v", v.Name, v.Expect)
		}
	}
	if list[1].SQL != "SELECT ':x: 0: y'\n  WHERE a = 1;" || list[3].Expect.Variable != "délta" {
		t.Errorf("%+v", list)
	}
	again, err := Parse(Lines(list))
	if err != nil || Lines(again) != Lines(list) {
		t.Errorf("%v: %q", err, Lines(again))
	}
	for _, wrong := range []string{"SELECT 1", "a: SELECT 1", "a: unchanged:", "a: 1: x\na: 2: y", ": 1: x", "a: 1e5: x", "a: sum(delta): x"} {
		if _, err := Parse(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func rowsOf(rows ...string) Rows {
	return func(yield func([][]byte) bool) {
		for _, row := range rows {
			var cells [][]byte
			for cell := range strings.SplitSeq(row, ",") {
				if cell == "NULL" {
					cells = append(cells, nil)
				} else {
					cells = append(cells, []byte(cell))
				}
			}
			if !yield(cells) {
				return
			}
		}
	}
}

func answer(rows ...string) Answer { return Single(rowsOf(rows...)) }

func TestRowsWithoutAnEqualOneAreNamed(t *testing.T) {
	for _, c := range []struct{ a, b, first, second []string }{
		{[]string{"1,a", "2,b", "2,b", "3,c"}, []string{"2,b", "1,a", "4,d"}, []string{"2, b", "3, c"}, []string{"4, d"}},
		{[]string{"1.0"}, []string{"1"}, nil, nil},
		{nil, []string{"1", "2", "3", "4", "5"}, nil, []string{"1", "2", "3"}},
	} {
		list := Pair(rowsOf(c.a...), rowsOf(c.b...))
		if !slices.Equal(list[0].First, c.first) || !slices.Equal(list[1].First, c.second) || list[0].Rows != len(c.a) {
			t.Errorf("%+v", list)
		}
		v := Invariant{Expect: Expectation{Kind: Equal}}
		if v.holds(list, nil) != (len(c.first)+len(c.second) == 0) {
			t.Errorf("%+v", list)
		}
	}
}

func TestAnswersAreEqualAsBagsOfRows(t *testing.T) {
	for _, c := range []struct {
		a, b Answer
		same bool
	}{
		{answer("1,a", "2,b"), answer("2,b", "1,a"), true},
		{answer("1.50"), answer("1.5"), true},
		{answer("-0.0"), answer("0"), true},
		{answer("100"), answer("1"), false},
		{answer("1", "1"), answer("1"), false},
		{answer("1", "1", "2"), answer("1", "2", "2"), false},
		{answer("NULL"), answer(""), false},
		{answer("a,NULL"), answer("NULL,a"), false},
		{answer("1,2"), answer("12,"), false},
		{answer("01"), answer("1"), false},
	} {
		v := Invariant{Expect: Expectation{Kind: Equal}}
		if v.holds([]Answer{c.a, c.b}, nil) != c.same {
			t.Errorf("%v and %v", c.a, c.b)
		}
	}
}

func TestEncodedAnswersFitAndReturn(t *testing.T) {
	long := strings.Repeat("\"\\\u2028<é\n", 500)
	for _, list := range [][]Answer{{answer(long)}, Pair(rowsOf(long, long, long, long), rowsOf(long, long)), {{}}} {
		text := Encode(63, list)
		got, err := decode(text)
		if len(text) > keptBytes || err != nil || got.Invariant != 63 || len(got.Answers) != len(list) || got.Answers[0].Hash != list[0].Hash {
			t.Errorf("%d bytes, %v: %s", len(text), err, text)
		}
	}
}

// given are the invariants of the tests, as a recording has them.
func given(t *testing.T, lines string, starts ...Answer) []Invariant {
	t.Helper()
	list, err := Parse(lines)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if i < len(starts) {
			list[i].Start = starts[i]
		}
	}
	recalled, err := Recall(Lines(list), Starts(list))
	if err != nil {
		t.Fatal(err)
	}
	return recalled
}

const (
	object = 1000
	sums   = 2000
)

func auditOf(sequence uint64, end int64, i int, answers ...Answer) history.Transaction {
	text := Encode(i, answers)
	return history.Transaction{
		ID: history.NewID(1, 9, sequence), Kind: history.Numbered | history.Background | history.ReadOnly, Outcome: history.Committed, End: end,
		Ops:    []history.Op{{Object: object + uint64(i), Observed: true, State: history.Broken, Value: int64(len(text))}},
		Broken: text,
	}
}

func decide(t *testing.T, list []Invariant, h *checktest.History, end *checktest.End) checktest.Reported {
	t.Helper()
	h.Run = 1
	in := Input{Input: check.Input{History: []check.Source{h}}, List: list, Object: object, Sums: sums, Receipts: true}
	if end != nil {
		in.End = end
	}
	r, err := Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return checktest.Worded([]check.Result{r}, check.Words{})[0]
}

func TestFirstAuditIsNamed(t *testing.T) {
	list := given(t, "all: unchanged: x\nnone: empty: y", answer("5"))
	h := &checktest.History{Txns: []history.Transaction{
		auditOf(1, 1e9, 0, answer("5.0")), auditOf(2, 2e9, 0, answer("4")), auditOf(3, 3e9, 0, answer("4")), auditOf(4, 4e9, 1, answer("7,8", "9,9")),
	}}
	end := &checktest.End{UnexpectedRows: []string{string(Encode(0, []Answer{answer("5")})), string(Encode(1, []Answer{answer()}))}}
	r := decide(t, list, h, end)
	if r.Status != check.Invalid || len(r.Findings) != 2 || r.Findings[0].Count != 2 || r.Findings[0].First != 2e9 || len(r.Where) != 3 {
		t.Errorf("%+v", r.Result)
	}
	for _, want := range []string{
		"2 times, first: the invariant all (unchanged) does not hold: audit 1-9-2 at 2.0 s read 4 in place of 5.",
		"The invariant none (empty) does not hold: audit 1-9-4 at 4.0 s read 2 rows (7, 8; 9, 9).",
	} {
		if !strings.Contains(r.Detail, want) {
			t.Errorf("no %q in %s", want, r.Detail)
		}
	}
}

func TestWithoutAnswersNothingIsDecided(t *testing.T) {
	list := given(t, "all: unchanged: x\nnone: empty: y", answer("5"))
	healthy := &checktest.History{Txns: []history.Transaction{auditOf(1, 1e9, 0, answer("5"))}}
	first := string(Encode(0, []Answer{answer("5")}))
	for name, c := range map[string]struct {
		h   *checktest.History
		end *checktest.End
	}{
		"no end state":      {healthy, nil},
		"an answer missing": {healthy, &checktest.End{UnexpectedRows: []string{first}}},
		"an answer twice":   {healthy, &checktest.End{UnexpectedRows: []string{first, first}}},
		"no text":           {healthy, &checktest.End{UnexpectedRows: []string{"cut off"}}},
		"another invariant": {healthy, &checktest.End{UnexpectedRows: []string{string(Encode(2, []Answer{answer("5")}))}}},
		"too few answers":   {healthy, &checktest.End{UnexpectedRows: []string{string(Encode(0, nil))}}},
		"a damaged audit": {&checktest.History{Txns: []history.Transaction{auditOf(1, 1e9, 7, answer("5"))}},
			&checktest.End{UnexpectedRows: []string{first, string(Encode(1, []Answer{answer()}))}}},
	} {
		if r := decide(t, list, c.h, c.end); r.Status != check.Unknown || r.Why == nil {
			t.Errorf("%s: %v: %s", name, r.Status, r.Detail)
		}
	}
	r := decide(t, list, healthy, &checktest.End{UnexpectedRows: []string{first, string(Encode(1, []Answer{answer()}))}})
	if r.Status != check.Valid {
		t.Errorf("%v: %s", r.Status, r.Detail)
	}
}

// TestSumsAgreeWithEverySubset compares the check with all sets of transactions of unknown outcome that may be applied.
func TestSumsAgreeWithEverySubset(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[check.Status]int{}
	for range 2000 {
		list := given(t, "a: sum(:x): q\nb: sum(:y): q", answer("10.25"), answer("0"))
		h, end := &checktest.History{}, &checktest.End{}
		want := [2]int64{1025, 0} // in hundredths
		var open [][2]int64
		for i := range uint64(random.IntN(6)) {
			tx := history.Transaction{ID: history.NewID(1, 1, i+1), Kind: history.Numbered, Outcome: history.Outcome(random.IntN(4))}
			var added [2]int64
			for k := range added {
				added[k] = random.Int64N(500) - 250
				tx.Ops = append(tx.Ops, history.Op{Object: sums + uint64(2*k), Write: true, Amount: added[k] / 100},
					history.Op{Object: sums + uint64(2*k+1), Write: true, Amount: added[k] % 100 * 1e16})
			}
			h.Txns = append(h.Txns, tx)
			applied := tx.Outcome == history.Committed
			if tx.Outcome == history.Unknown {
				switch random.IntN(3) {
				case 0:
					applied = true
					end.LedgerRows = append(end.LedgerRows, history.Row{Transaction: tx.ID, Amount: 1})
				case 1:
					end.LedgerRows = append(end.LedgerRows, history.Row{Transaction: tx.ID, Mark: history.Tombstone})
				default:
					open = append(open, added)
				}
			}
			if applied {
				want[0], want[1] = want[0]+added[0], want[1]+added[1]
			}
		}
		saw := want
		saw[random.IntN(2)] += random.Int64N(3) - 1
		for i, n := range saw {
			end.UnexpectedRows = append(end.UnexpectedRows, string(Encode(i, []Answer{answer(big.NewRat(n, 100).FloatString(2))})))
		}
		r := decide(t, list, h, end)
		seen[r.Status]++
		possible := false
		for set := range 1 << len(open) {
			sum := want
			for i, added := range open {
				if set>>i&1 == 1 {
					sum[0], sum[1] = sum[0]+added[0], sum[1]+added[1]
				}
			}
			possible = possible || sum == saw
		}
		if r.Status == check.Invalid && possible || r.Status == check.Valid && (len(open) > 0 || saw != want) || len(open) == 0 && r.Status == check.Unknown {
			t.Fatalf("%v with %d open, saw %v, want %v: %s", r.Status, len(open), saw, want, r.Detail)
		}
	}
	if len(seen) != 3 {
		t.Error(fmt.Sprint(seen))
	}
}
