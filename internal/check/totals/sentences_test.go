package totals

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
)

// witness answers questions about a world by searching all of it.
type witness struct{ *world }

func (w witness) find(id string) *history.Transaction {
	for i := range w.Txns {
		if w.Txns[i].ID.String() == id {
			return &w.Txns[i]
		}
	}
	return nil
}

func (w witness) op(id, account string) (history.Op, bool) {
	if tx := w.find(id); tx != nil {
		for _, op := range tx.Ops {
			if fmt.Sprint(op.Object) == account {
				return op, true
			}
		}
	}
	return history.Op{}, false
}

func (w witness) row(id, account, version string) bool {
	return slices.ContainsFunc(w.LedgerRows, func(l history.Row) bool {
		return l.Mark == 0 && l.Transaction.String() == id && fmt.Sprint(l.Object) == account && fmt.Sprint(l.Version) == version
	})
}

// ownWord reports whether the client of a transaction saw that it made a version.
func (w witness) ownWord(id, account, version string) bool {
	op, ok := w.op(id, account)
	tx := w.find(id)
	return ok && op.Write && op.Observed && tx.Outcome == history.Committed && fmt.Sprint(op.Version+1) == version
}

func (w witness) made(id, account, version string) bool {
	return w.row(id, account, version) || w.ownWord(id, account, version)
}

func (w witness) read(id, account, version string) bool {
	op, ok := w.op(id, account)
	return ok && op.Observed && fmt.Sprint(op.Version) == version
}

// books returns an account's balance and number of legs by the ledger, and its final state.
func (w witness) books(account string) (want int64, legs uint64, a history.Object) {
	want = opening
	for _, l := range w.LedgerRows {
		if l.Mark == 0 && fmt.Sprint(l.Object) == account {
			want, legs = want+l.Amount, legs+1
		}
	}
	for _, o := range w.ObjectRows {
		if fmt.Sprint(o.N) == account {
			a = o
		}
	}
	return want, legs, a
}

// legs reports whether the ledger has any leg of a transaction, exactly the legs sent, and a repeated leg.
func (w witness) legs(id string) (any, same, twice bool) {
	var sent, found []string
	if tx := w.find(id); tx != nil {
		for _, op := range tx.Ops {
			if op.Write {
				sent = append(sent, fmt.Sprint(len(sent), op.Object, op.Amount))
			}
		}
	}
	objects := map[uint64]bool{}
	for _, l := range w.LedgerRows {
		if l.Mark == 0 && l.Transaction.String() == id {
			found = append(found, fmt.Sprint(l.Number, l.Object, l.Amount))
			twice = twice || objects[l.Object]
			objects[l.Object] = true
		}
	}
	slices.Sort(sent)
	slices.Sort(found)
	return len(found) > 0, slices.Equal(sent, found), twice
}

func (w witness) outcome(id string, of ...history.Outcome) bool {
	tx := w.find(id)
	return tx != nil && slices.Contains(of, tx.Outcome)
}

// after reports whether a sentence about the fate of a read's maker is true.
func (w witness) after(id, account, version, said string) bool {
	n, _ := strconv.ParseUint(version, 10, 64)
	made := regexp.MustCompile(`version (\d+)`).FindStringSubmatch(said)
	any, _, _ := w.legs(id)
	switch {
	case strings.Contains(said, "no client sent"):
		return w.find(id) == nil
	case strings.Contains(said, "made only version 0"):
		return true
	case strings.Contains(said, "was acknowledged"):
		return !any && w.outcome(id, history.Committed)
	case strings.Contains(said, "not in the ledger"):
		return !any && w.find(id) != nil && strings.Contains(said, w.find(id).Outcome.String())
	case strings.Contains(said, "did not make that version"):
		return !w.made(id, account, version)
	case made == nil || !w.row(id, account, made[1]) || w.ownWord(id, account, version):
		return false
	case strings.Contains(said, "only later"):
		m, _ := strconv.ParseUint(made[1], 10, 64)
		return m > n
	case strings.Contains(said, "in the ledger as the maker"):
		return w.outcome(id, history.Aborted, history.Rejected)
	}
	return strings.Contains(said, "by the ledger")
}

// claims holds the patterns of sentences in results, with the condition for their truth.
var claims = []struct {
	form string
	true func(w witness, m []string) bool
}{
	{`ID read version N of #`, func(w witness, m []string) bool { return w.read(m[1], m[3], m[2]) }},
	{`version N of #, which KINDID overwrote`, func(w witness, m []string) bool {
		n, _ := strconv.Atoi(m[1])
		for n++; n < 100; n++ { // the ledger may lack the next maker
			if w.made(m[3], m[2], fmt.Sprint(n)) {
				return true
			}
			if slices.ContainsFunc(w.LedgerRows, func(l history.Row) bool { return fmt.Sprint(l.Object, l.Version) == m[2]+" "+fmt.Sprint(n) }) {
				return false
			}
		}
		return false
	}},
	{`ID made version N of #, which KINDID (?:read|overwrote)`, func(w witness, m []string) bool { return w.made(m[1], m[3], m[2]) }},
	{`ID made version N of #, which KINDID read`, func(w witness, m []string) bool { return w.read(m[4], m[3], m[2]) }},
	{`ID read version N of # as made by (?:KINDID|the load), (which [^.;]*)`, func(w witness, m []string) bool {
		op, _ := w.op(m[1], m[3])
		return (m[4] == "" && op.Writer == 0 || m[4] == op.Writer.String()) && w.after(m[4], m[3], m[2], m[5])
	}},
	{`ID and KINDID both read version N of # and both made version N, so the effect of one of them is gone`, func(w witness, m []string) bool {
		want, legs, a := w.books(m[4])
		for _, id := range []string{m[1], m[2]} {
			op, ok := w.op(id, m[4])
			if !w.made(id, m[4], m[5]) || !ok || op.Observed && fmt.Sprint(op.Version) != m[3] {
				return false
			}
		}
		return a.Value != want || a.Version != legs
	}},
	{`ID and KINDID both made version N of #`, func(w witness, m []string) bool {
		return w.made(m[1], m[4], m[3]) && w.made(m[2], m[4], m[3])
	}},
	{`ID and KINDID are both in the ledger as the maker of version N of #(, which holds the amounts of both)?`, func(w witness, m []string) bool {
		want, _, a := w.books(m[4])
		return w.row(m[1], m[4], m[3]) && w.row(m[2], m[4], m[3]) && (m[5] == "" || a.Value == want)
	}},
	{`ID had ended (\S+ \S+) before KINDID began`, func(w witness, m []string) bool {
		said, err := time.ParseDuration(strings.ReplaceAll(m[2], " ", ""))
		real := time.Duration(w.find(m[3]).Try - w.find(m[1]).End)
		return err == nil && real > 0 && (said-real).Abs() <= real/100
	}},
	{`read balance ([\d.-]+) at version N of #, where opening balance and ledger make ([\d.-]+)`, func(w witness, m []string) bool {
		sum := int64(opening)
		for _, l := range w.LedgerRows {
			if n, _ := strconv.ParseUint(m[2], 10, 64); l.Mark == 0 && fmt.Sprint(l.Object) == m[3] && l.Version <= n {
				sum += l.Amount
			}
		}
		return money.Format(sum) == m[4] && m[1] != m[4]
	}},
	{`transaction ID read ([\d.-]+) at version N of #`, func(w witness, m []string) bool {
		op, _ := w.op(m[1], m[4])
		return w.read(m[1], m[4], m[3]) && money.Format(op.Value) == m[2]
	}},
	{`# holds ([\d.-]+), but opening balance and ledger make ([\d.-]+) \(([\d.-]+) off\)`, func(w witness, m []string) bool {
		want, _, a := w.books(m[1])
		return money.Format(a.Value) == m[2] && money.Format(want) == m[3] && money.Format(a.Value-want) == m[4]
	}},
	{`# (?:holds [^;]*; it )?has version N (?:and|but) N ledger leg`, func(w witness, m []string) bool {
		_, legs, a := w.books(m[1])
		return fmt.Sprint(a.Version) == m[2] && fmt.Sprint(legs) == m[3]
	}},
	{`# names transfer ID as the maker of its last version, N, and the ledger has no such leg`, func(w witness, m []string) bool {
		_, _, a := w.books(m[1])
		return a.Writer.String() == m[2] && fmt.Sprint(a.Version) == m[3] && !w.row(m[2], m[1], m[3])
	}},
	{`# ends at version N, and the ledger has a leg of a later version`, func(w witness, m []string) bool {
		_, _, a := w.books(m[1])
		later := func(l history.Row) bool { return fmt.Sprint(l.Object) == m[1] && l.Version > a.Version }
		return fmt.Sprint(a.Version) == m[2] && slices.ContainsFunc(w.LedgerRows, later)
	}},
	{`ID made version N of # and was seen as the maker of version N: it was applied twice`, func(w witness, m []string) bool {
		want, legs, a := w.books(m[3])
		op, _ := w.op(m[1], m[3])
		return w.row(m[1], m[3], m[2]) && !w.row(m[1], m[3], m[4]) && a.Value-want == op.Amount && a.Version == legs+1
	}},
	{`acknowledged and lost: IDS`, every(func(w witness, id string) bool {
		any, _, _ := w.legs(id)
		return !any && w.outcome(id, history.Committed)
	})},
	{`legs in the ledger are not those that were acknowledged: IDS`, every(func(w witness, id string) bool {
		any, same, _ := w.legs(id)
		return any && !same && w.outcome(id, history.Committed)
	})},
	{`of unknown outcome whose legs in the ledger are not those that were sent: IDS`, every(func(w witness, id string) bool {
		any, same, _ := w.legs(id)
		return any && !same && w.outcome(id, history.Unknown)
	})},
	{`reported as not applied, yet in the ledger: IDS`, every(func(w witness, id string) bool {
		any, _, _ := w.legs(id)
		return any && w.outcome(id, history.Aborted, history.Rejected)
	})},
	{`in the ledger that no client sent: IDS`, every(func(w witness, id string) bool { return w.find(id) == nil })},
	{`with a tombstone in the ledger that no client sent: IDS`, every(func(w witness, id string) bool { return w.find(id) == nil })},
	{`with a leg twice in the ledger: IDS`, every(func(w witness, id string) bool { _, _, twice := w.legs(id); return twice })},
	{`([\d.-]+) net (lost|appeared from nowhere): the balances add up to ([\d.-]+) in the end, and added up to ([\d.-]*\d) at the load`, func(w witness, m []string) bool {
		sum, load := int64(0), int64(len(w.ObjectRows))*opening
		for _, a := range w.ObjectRows {
			sum += a.Value
		}
		off := map[string]int64{"appeared from nowhere": sum - load, "lost": load - sum}[m[2]]
		return money.Format(sum) == m[3] && money.Format(load) == m[4] && money.Format(off) == m[1] && off > 0
	}},
}

// every applies a condition to each element of a list.
func every(one func(w witness, id string) bool) func(w witness, m []string) bool {
	return func(w witness, m []string) bool {
		for id := range strings.SplitSeq(m[1], ", ") {
			id, _, _ = strings.Cut(id, " and ")
			if !one(w, id) {
				return false
			}
		}
		return true
	}
}

// forms holds the regular expressions of the claims.
var forms = func() (list []*regexp.Regexp) {
	r := strings.NewReplacer("IDS", `((?:\d+-\d+-\d+(?:, )?)+(?: and \d+ more)?)`, "KINDID", `[a-z ]*?(\d+-\d+-\d+)`, "ID", `(\d+-\d+-\d+)`, "#", `[Aa]ccount #(\d+)`, " N", ` (\d+)`)
	for _, c := range claims {
		list = append(list, regexp.MustCompile(r.Replace(c.form)))
	}
	return list
}()

// untrue returns the false statements of results about a world, and counts the true ones.
func untrue(w *world, results []checktest.Reported, held []int) (lies []string) {
	for _, r := range results {
		said := []string{r.Detail}
		for _, a := range r.Anomalies {
			said = append(said, a.Detail)
		}
		for _, text := range said {
			for i, form := range forms {
				for _, m := range form.FindAllStringSubmatch(text, -1) {
					if claims[i].true(witness{w}, m) {
						held[i]++
					} else {
						lies = append(lies, fmt.Sprintf("%s: %q in %s", r.Name, m[0], text))
					}
				}
			}
		}
	}
	return lies
}

// TestSentencesAreTrue checks every statement about IDs, accounts, versions and amounts, for each violation
// and for correct histories with one change.
func TestSentencesAreTrue(t *testing.T) {
	held := make([]int, len(claims))
	look := func(name string, w *world, in AccountsInput) {
		for _, lie := range untrue(w, checked(in), held) {
			t.Errorf("%s: %s", name, lie)
		}
	}
	for _, tc := range violations {
		w := newWorld(8)
		tc.make(w)
		look(tc.name, w, w.input(isolation.StrictSerializable))
	}
	for seed := range checktest.Rounds(1500, 7500) {
		rng := rand.New(rand.NewPCG(seed, 29))
		w := parallel(rng, 3+rng.IntN(6), 1+rng.IntN(6), 4+rng.IntN(30), false)
		bend(rng, w)
		look(fmt.Sprintf("seed %d", seed), w, w.input(isolation.StrictSerializable))
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 31))
		w := weak(rng, 3+rng.IntN(3), 2+rng.IntN(8))
		look(fmt.Sprintf("stale reads %d", seed), w, w.input(isolation.StrictSerializable))
		w = overwriting(rng, 4, 40)
		look(fmt.Sprintf("lost updates %d", seed), w, w.input(isolation.StrictSerializable))
	}
	for seed := range uint64(40) {
		for _, p := range plants {
			w, _ := planted(p, seed)
			look(fmt.Sprintf("%s, seed %d", p.name, seed), w, w.input(isolation.StrictSerializable))
		}
	}
	for i, n := range held {
		if n < 3 {
			t.Errorf("%d times only: %s", n, claims[i].form)
		}
	}
}
