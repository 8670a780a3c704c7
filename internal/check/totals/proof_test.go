package totals

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/chains"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// parallel returns a history of several clients on a database that commits one transaction after another.
// Each takes effect at an instant between its beginning and its end. A few are of unknown outcome, rejected,
// looked up, or audits. If torn is set, read-only transactions read at two instants, which READ COMMITTED
// allows.
func parallel(rng *rand.Rand, accounts, clients, count int, torn bool) *world {
	w := newWorld(accounts)
	type moment struct {
		tx   *history.Transaction
		at   int64
		work func(tx *history.Transaction)
	}
	sequence, free := make([]uint64, clients), make([]int64, clients)
	var list []moment
	var all []*history.Transaction
	for range count {
		c := rng.IntN(clients)
		sequence[c]++
		tx := &history.Transaction{ID: history.NewID(1, uint64(c), sequence[c]), Outcome: history.Committed, Attempts: 1}
		try := free[c] + rng.Int64N(100)
		at := try + rng.Int64N(1000)
		end := at + rng.Int64N(1000)
		tx.Due, tx.Sent, tx.Try, tx.End, free[c] = try, try, try, end, end
		all = append(all, tx)
		if torn && rng.IntN(4) == 0 {
			tx.Kind = kindInquiry
			order := rng.Perm(accounts)
			for i, when := range []int64{at, at + rng.Int64N(end-at+1)} {
				list = append(list, moment{tx, when, func(tx *history.Transaction) { w.see(tx, uint64(order[i])) }})
			}
			continue
		}
		if torn && rng.IntN(6) == 0 { // others may have changed it since the read
			tx.Kind = kindJoint
			order := rng.Perm(accounts)
			list = append(list,
				moment{tx, at, func(tx *history.Transaction) { w.see(tx, uint64(order[0])) }},
				moment{tx, at + rng.Int64N(end-at+1), func(tx *history.Transaction) { w.overwrite(tx, uint64(order[1])) }})
			continue
		}
		work := w.parallelWork(rng, tx, &at)
		list = append(list, moment{tx, at, work})
	}
	slices.SortStableFunc(list, func(a, b moment) int { return int(a.at - b.at) })
	for _, m := range list {
		m.work(m.tx)
	}
	for _, tx := range all {
		w.Txns = append(w.Txns, *tx)
	}
	slices.SortFunc(w.Txns, func(a, b history.Transaction) int { return int(a.End - b.End) })
	return w
}

// overwrite moves 1 from the account that tx has read, in its current state, to another one.
func (w *world) overwrite(tx *history.Transaction, to uint64) {
	op := &tx.Ops[0]
	op.Write, op.Amount = true, -1
	a := &w.ObjectRows[op.Object]
	a.Value--
	a.Version++
	a.Writer = tx.ID
	w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: tx.ID, Object: op.Object, Amount: -1, Version: a.Version})
	w.leg(tx, to, 1)
}

// parallelWork returns a random operation for a transaction.
func (w *world) parallelWork(rng *rand.Rand, tx *history.Transaction, at *int64) func(tx *history.Transaction) {
	accounts := len(w.ObjectRows)
	order := rng.Perm(accounts)
	transfer := func(tx *history.Transaction) {
		for i, n := range order[:2] {
			w.leg(tx, uint64(n), int64(2*i-1))
		}
	}
	blind := func(tx *history.Transaction) {
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
	}
	tx.Kind = kindTransfer
	switch rng.IntN(20) {
	case 0, 1:
		tx.Kind = kindInquiry
		return func(tx *history.Transaction) { w.see(tx, uint64(order[0])); w.see(tx, uint64(order[1])) }
	case 2:
		tx.Kind = kindAudit
		return func(tx *history.Transaction) {
			for n := range accounts {
				w.see(tx, uint64(n))
			}
		}
	case 3:
		tx.Outcome, tx.Reason = history.Rejected, noFunds
		return func(tx *history.Transaction) {
			for i, n := range order[:2] {
				op := w.see(tx, uint64(n))
				op.Write, op.Amount = true, int64(2*i-1)*1e9
			}
		}
	case 4: // its client gave up before it took effect
		tx.Outcome = history.Unknown
		*at += rng.Int64N(3000)
		return func(tx *history.Transaction) { transfer(tx); blind(tx) }
	case 5:
		tx.LookedUp = true
		return func(tx *history.Transaction) { transfer(tx); blind(tx) }
	case 6:
		tx.Outcome, tx.LookedUp = history.Aborted, true
		return func(tx *history.Transaction) {
			tx.Ops = []history.Op{{Object: uint64(order[0]), Write: true, Amount: 1}}
			w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: tx.ID, Mark: history.Tombstone})
		}
	case 7, 8:
		tx.Kind = kindJoint
		return func(tx *history.Transaction) { w.see(tx, uint64(order[2])); transfer(tx) }
	}
	return transfer
}

// sameAsExamined fails if the proof and the examination of the whole history disagree. It reports whether
// there was a proof.
func sameAsExamined(t *testing.T, in AccountsInput, seed uint64) (proved bool) {
	t.Helper()
	quick, _, err := prove(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if quick == nil {
		return false
	}
	whole, err := examine(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	same := reflect.DeepEqual(quick, whole)
	byName := checktest.ByName(whole)
	// Either of two circles of one length may be shown.
	if byName[check.Serializable].Status == check.Invalid || byName[check.Strict].Status == check.Invalid {
		same = slices.Equal(decisions(quick), decisions(whole))
	}
	if !same {
		t.Fatalf("seed %d: proved\n%q\nexamined\n%q", seed, decisions(quick), decisions(whole))
	}
	return true
}

// TestCorrectHistoriesAreProved checks that every history of a serial database is proved, with the same
// results as the examination.
func TestCorrectHistoriesAreProved(t *testing.T) {
	for seed := range checktest.Rounds(2000, 10000) {
		rng := rand.New(rand.NewPCG(seed, 21))
		w := parallel(rng, 3+rng.IntN(20), 1+rng.IntN(12), rng.IntN(80), false)
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		if slices.ContainsFunc(w.Txns, func(tx history.Transaction) bool { return tx.Kind == kindAudit }) == false {
			in.Audited = nil
		}
		if !sameAsExamined(t, in, seed) {
			t.Fatalf("seed %d: no proof was found: %v", seed, unproved(t, w))
		}
	}
}

// TestProofWithCircles checks that histories with torn reads or write skews are proved except for their
// circles, with the same results as the examination.
func TestProofWithCircles(t *testing.T) {
	circles := 0
	for seed := range checktest.Rounds(1500, 7500) {
		rng := rand.New(rand.NewPCG(seed, 25))
		var w *world
		if seed%3 == 0 {
			w = snapshotStore(rng, 6, 40)
			for i := range w.Txns { // each has a client of its own
				rename(w, w.Txns[i].ID, history.NewID(1, uint64(i)+1, 1))
			}
			w.Txns = slices.DeleteFunc(w.Txns, func(tx history.Transaction) bool { return tx.Outcome == history.Aborted })
		} else {
			w = parallel(rng, 3+rng.IntN(12), 2+rng.IntN(8), 20+rng.IntN(200), true)
		}
		in := w.input(isolation.ReadCommitted)
		if !sameAsExamined(t, in, seed) {
			t.Fatalf("seed %d: no proof was found: %v", seed, unproved(t, w))
		}
		if checktest.ByName(checked(in))[check.Serializable].Status == check.Invalid {
			circles++
		}
	}
	if circles < 300 {
		t.Errorf("%d had circles: too few to prove anything", circles)
	}
}

// TestProofWithoutEndState compares the proof without an end state with the examination, for correct, torn,
// incomplete and wrong histories.
func TestProofWithoutEndState(t *testing.T) {
	proved, circles, refused, healthy := 0, 0, 0, 0
	for seed := range checktest.Rounds(3000, 15000) {
		rng := rand.New(rand.NewPCG(seed, 27))
		w := parallel(rng, 3+rng.IntN(12), 1+rng.IntN(8), 4+rng.IntN(150), seed%2 == 0)
		switch seed % 8 {
		case 0, 1:
			w.cutOff(rng)
		case 2, 3:
			bend(rng, w)
		}
		claim := []isolation.Level{isolation.ReadCommitted, isolation.StrictSerializable}[rng.IntN(2)]
		in := w.input(claim)
		in.End = nil
		if !sameAsExamined(t, in, seed) {
			if refused++; seed%8 > 3 && claim == isolation.ReadCommitted {
				healthy++ // the last versions do not name their makers
			}
			continue
		}
		proved++
		if checktest.ByName(checked(in))[check.Serializable].Status == check.Invalid {
			circles++
		}
	}
	if proved < 2000 || circles < 400 || refused < 200 || healthy > proved/40 {
		t.Errorf("%d were proved, %d of them with circles, %d not, %d of these healthy", proved, circles, refused, healthy)
	}
}

// cutOff removes each client's last transactions.
func (w *world) cutOff(rng *rand.Rand) {
	last := map[uint64]uint64{}
	for i := range w.Txns {
		id := w.Txns[i].ID
		last[id.Client()] = max(last[id.Client()], id.Sequence())
	}
	for client := range last {
		last[client] -= min(last[client], uint64(rng.IntN(4)))
	}
	w.Txns = slices.DeleteFunc(w.Txns, func(tx history.Transaction) bool { return tx.ID.Sequence() > last[tx.ID.Client()] })
	w.Incomplete = true
}

// TestNoFalseProof checks that no wrong history or end state is proved.
func TestNoFalseProof(t *testing.T) {
	proved, refused, delayed := 0, 0, 0
	for seed := range checktest.Rounds(6000, 30000) {
		rng := rand.New(rand.NewPCG(seed, 22))
		w := parallel(rng, 3+rng.IntN(6), 1+rng.IntN(6), 4+rng.IntN(20), seed%4 == 0)
		bend(rng, w)
		in := w.input(isolation.StrictSerializable)
		if sameAsExamined(t, in, seed) {
			proved++
			results := checktest.ByName(checked(in))
			if results[check.Serializable].Status == check.Valid && results[check.Strict].Status == check.Invalid {
				delayed++
			}
		} else {
			refused++
		}
	}
	if refused < 4000 || proved < 100 || delayed < 20 {
		t.Errorf("%d were proved, %d of them but for real time, and %d not: too few of one kind to prove anything", proved, delayed, refused)
	}
}

// bend changes one thing.
func bend(rng *rand.Rand, w *world) {
	tx := &w.Txns[rng.IntN(len(w.Txns))]
	switch n := rng.IntN(12); {
	case n == 0 && len(w.LedgerRows) > 0:
		i := rng.IntN(len(w.LedgerRows))
		w.LedgerRows = slices.Delete(w.LedgerRows, i, i+1)
	case n == 1 && len(w.LedgerRows) > 0:
		w.LedgerRows = append(w.LedgerRows, w.LedgerRows[rng.IntN(len(w.LedgerRows))])
	case n == 2 && len(w.LedgerRows) > 0:
		r := &w.LedgerRows[rng.IntN(len(w.LedgerRows))]
		switch rng.IntN(4) {
		case 0:
			r.Amount++
		case 1:
			r.Version++
		case 2:
			r.Object = (r.Object + 1) % uint64(len(w.ObjectRows))
		case 3:
			r.Transaction++
		}
	case n == 3:
		a := &w.ObjectRows[rng.IntN(len(w.ObjectRows))]
		switch rng.IntN(3) {
		case 0:
			a.Value++
		case 1:
			a.Version++
		case 2:
			a.Writer++
		}
	case n == 4:
		tx.Outcome = history.Outcome(rng.IntN(4))
	case n == 5: // real time
		tx.Try += 1500
		tx.End += 1500
		for i := range w.Txns {
			if other := &w.Txns[i]; other.ID.Client() == tx.ID.Client() && other.ID > tx.ID {
				other.Try += 1500
				other.End += 1500
			}
		}
	case n == 6:
		i := rng.IntN(len(w.Txns))
		w.Txns = slices.Delete(w.Txns, i, i+1)
	default:
		if len(tx.Ops) == 0 {
			return
		}
		op := &tx.Ops[rng.IntN(len(tx.Ops))]
		switch n {
		case 7:
			op.Value++
		case 8:
			op.Version = uint64(max(0, int(op.Version)-1+2*rng.IntN(2)))
		case 9:
			op.Writer = w.Txns[rng.IntN(len(w.Txns))].ID
		case 10:
			op.Amount++
		case 11: // its earlier state
			for i := range w.Txns {
				for _, other := range w.Txns[i].Ops {
					if other.Object == op.Object && other.Observed && other.Version < op.Version {
						op.Version, op.Value, op.Writer = other.Version, other.Value, other.Writer
					}
				}
			}
		}
	}
}

// TestProofsAgainstDefinition checks that, with stale reads, exactly the strictly serializable histories are
// proved.
func TestProofsAgainstDefinition(t *testing.T) {
	var counts [2]int
	for seed := range checktest.Rounds(4000, 20000) {
		rng := rand.New(rand.NewPCG(seed, 23))
		w := weak(rng, 3+rng.IntN(3), 2+rng.IntN(6))
		for i := range w.Txns { // each has a client of its own
			own := history.NewID(1, uint64(i)+1, 1)
			rename(w, w.Txns[i].ID, own)
		}
		results, _, err := prove(t.Context(), w.input(isolation.StrictSerializable))
		if err != nil {
			t.Fatal(err)
		}
		want := possible(w, true)
		if results == nil && want {
			t.Logf("seed %d: %v", seed, unproved(t, w))
		}
		if got := results != nil && check.Verdict(results) == check.Valid; got != want {
			t.Fatalf("seed %d: proved %v, the oracle says %v", seed, got, want)
		}
		if want {
			counts[1]++
		} else {
			counts[0]++
		}
	}
	if counts[0] < 200 || counts[1] < 200 {
		t.Errorf("%v are too few of one kind", counts)
	}
}

// TestProofOfGroups checks that a correct history of rows in groups is proved, with the same results as the
// examination.
func TestProofOfGroups(t *testing.T) {
	for seed := range uint64(200) {
		c := newCounter(seed)
		c.versions = true
		c.drive(60, false)
		c.spread(6)
		quick, whole := newGroups(t.Context(), c.input(), 0), newGroups(t.Context(), c.input(), 0)
		if err := errors.Join(quick.addUp(), whole.addUp()); err != nil {
			t.Fatal(err)
		}
		proved := quick.proved()
		if proved == nil {
			t.Fatalf("seed %d: no proof was found", seed)
		}
		got, want := quick.ofAccounts(proved), whole.ofAccounts(whole.balances.results())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: proved\n%+v\nexamined\n%+v", seed, got, want)
		}
	}
}

// spread assigns the transactions of one client to several in turn.
func (c *counter) spread(clients uint64) {
	names := map[history.ID]history.ID{}
	for i := range c.Txns {
		own := history.NewID(1, uint64(i)%clients, uint64(i)/clients)
		names[c.Txns[i].ID], c.Txns[i].ID = own, own
	}
	for i := range c.Txns {
		for j := range c.Txns[i].Ops {
			op := &c.Txns[i].Ops[j]
			op.Writer = names[op.Writer]
		}
	}
	for i := range c.LedgerRows {
		c.LedgerRows[i].Transaction = names[c.LedgerRows[i].Transaction]
	}
	for i := range c.ObjectRows {
		c.ObjectRows[i].Writer = names[c.ObjectRows[i].Writer]
	}
}

// rename gives a transaction another ID.
func rename(w *world, id, own history.ID) {
	for i := range w.Txns {
		if w.Txns[i].ID == id {
			w.Txns[i].ID = own
		}
		for j := range w.Txns[i].Ops {
			if op := &w.Txns[i].Ops[j]; op.Writer == id {
				op.Writer = own
			}
		}
	}
	for i := range w.LedgerRows {
		if w.LedgerRows[i].Transaction == id {
			w.LedgerRows[i].Transaction = own
		}
	}
	for i := range w.ObjectRows {
		if w.ObjectRows[i].Writer == id {
			w.ObjectRows[i].Writer = own
		}
	}
}

// unproved returns the reason why a history was not proved.
func unproved(t *testing.T, w *world) error {
	in := w.input(isolation.StrictSerializable)
	b := newAccounts(t.Context(), in, 0)
	_, err := chains.Prove(t.Context(), chains.Input{Objects: in.Accounts, Opening: in.Opening, History: []chains.Recording{{Source: &w.History}}, End: &w.End, Look: b.lookAnew})
	return err
}

// TestPartFindsLateViolation checks that a lost update and a read skew are found in a part that begins in the
// middle of every chain.
func TestPartFindsLateViolation(t *testing.T) {
	for name, bend := range map[string]func(w *world){
		lostUpdateName: func(w *world) {
			before := w.ObjectRows[0]
			w.transfer(0, 1, 1)
			tx := &w.Txns[w.transfer(0, 2, 1)]
			op := &tx.Ops[0]
			op.Version, op.Value, op.Writer = before.Version, before.Value, before.Writer
		},
		"read skew (G-single)": func(w *world) {
			before := w.ObjectRows[0]
			w.transfer(0, 1, 1)
			tx := &w.Txns[w.inquiry(0, 1)]
			op := &tx.Ops[0]
			op.Version, op.Value, op.Writer = before.Version, before.Value, before.Writer
		},
	} {
		w := newWorld(4)
		for i := range uint64(300) {
			w.transfer(i%4, (i+1)%4, 1)
		}
		bend(w)
		w.Txns, w.Incomplete = w.Txns[270:], true
		in := w.input(isolation.Serializable)
		in.End = nil
		r := checktest.ByName(checked(in))[check.Serializable]
		if r.Status != check.Invalid || !slices.ContainsFunc(r.Findings, anomaly(name)) {
			t.Errorf("%s: %v: %s", name, r.Status, r.Detail)
		}
	}
}

// TestManyCyclesAreALowerBound checks that the count of an anomaly is a lower bound if not all cycles were
// examined.
func TestManyCyclesAreALowerBound(t *testing.T) {
	for _, skews := range []int{graph.MostPicked - 1, graph.MostPicked, graph.MostPicked + 1, 3 * graph.MostPicked} {
		w := newWorld(2 * skews)
		for i := range uint64(skews) {
			before := w.ObjectRows[2*i]
			w.transfer(2*i, 2*i+1, 1)
			tx := &w.Txns[w.inquiry(2*i, 2*i+1)]
			op := &tx.Ops[0]
			op.Version, op.Value, op.Writer = before.Version, before.Value, before.Writer
		}
		in := w.input(isolation.ReadCommitted)
		whole, err := examine(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		proved, _, err := prove(t.Context(), in)
		if err != nil || proved == nil {
			t.Fatalf("%d read skews are not proved: %v", skews, err)
		}
		for path, results := range map[string][]check.Result{"proof": proved, "examination": whole} {
			findings := checktest.ByName(results)[check.Serializable].Findings
			if len(findings) != 1 || findings[0].Count != min(skews, graph.MostPicked) || findings[0].AtLeast != (skews > graph.MostPicked) {
				t.Errorf("%d read skews, %s: %+v", skews, path, findings)
			}
		}
	}
}
