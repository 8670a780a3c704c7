package main

import (
	"cmp"
	"container/heap"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"stroppy/internal/history"
	"stroppy/tools/try"
)

// recording is a history that the bench makes by itself, as a database records it that
// commits one transfer after another: a file of any length takes no database.
type recording struct {
	clients, count int
	hot            uint64        // half of all picks are among so many accounts; 0: all are uniform
	pace           time.Duration // from one commit to the next, about; 0 is 10 µs
	audits         int           // that read all accounts, one after so many transfers as another
	skews          int           // inquiries that see a transfer in part, likewise
	lost           int           // acknowledged transfers that had no effect, likewise
	open           bool          // there is no end state
}

// transfer is one that its client has begun.
type transfer struct {
	client, sequence   uint64
	try, commit, after int64 // ns; after the commit its client waits so long for the answer
}

// byCommit is a heap: what commits first is on top.
type byCommit []transfer

func (h byCommit) Len() int           { return len(h) }
func (h byCommit) Less(i, j int) bool { return h[i].commit < h[j].commit }
func (h byCommit) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byCommit) Push(x any)        { *h = append(*h, x.(transfer)) }
func (h *byCommit) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

// record writes the recording into dir, over the accounts that a run recorded in sample,
// which a seed has made the same way. It is a pure function of both.
func (r recording) record(sample, dir string) {
	header, accounts := loaded(filepath.Join(sample, "history"))
	header.Clients = r.clients + 2 // the last ones audit, and inquire
	header.Keys["audits"] = strconv.Itoa(min(1, r.audits))
	folder := filepath.Join(dir, "history")
	out := try.Must(history.Create(folder, header, header.Clients))
	end := try.Must(history.CreateEnd(folder))
	r.drive(out, end, accounts)
	for i := range header.Clients {
		try.Check(out.Client(i).Flush())
	}
	for _, a := range accounts {
		try.Check(end.Object(a))
	}
	try.Check(errors.Join(end.Close(), out.Close()))
	if r.open {
		try.Check(errors.Join(os.Remove(filepath.Join(folder, "end-objects.bin")), os.Remove(filepath.Join(folder, "end-ledger.bin"))))
	}
}

// drive has every client do one transfer after another.
func (r recording) drive(out *history.Writer, end *history.EndWriter, accounts []history.Object) {
	rng := rand.New(rand.NewPCG(1, uint64(r.count)))
	// The speed of the database does not depend on the number of clients.
	service := int64(cmp.Or(r.pace, 10*time.Microsecond)) * int64(r.clients)
	next := func(client, sequence uint64, from int64) transfer {
		try := from + 1000 + rng.Int64N(1000)
		return transfer{client, sequence, try, try + 1 + rng.Int64N(service), 1 + rng.Int64N(service)}
	}
	var begun byCommit
	for c := range uint64(r.clients) {
		begun = append(begun, next(c, 1, rng.Int64N(service)))
	}
	heap.Init(&begun)
	tx := history.Transaction{Kind: 1 * history.Numbered, Outcome: history.Committed, Attempts: 1, Ops: make([]history.Op, 2)}
	a := auditor{out: out.Client(r.clients), accounts: accounts, id: history.NewID(1, uint64(r.clients), 0)}
	q := inquirer{out: out.Client(r.clients + 1), id: history.NewID(1, uint64(r.clients)+1, 0)}
	for i := range r.count {
		t := begun[0]
		if r.audits > 0 && i%(r.count/r.audits) == 0 {
			a.audit(t.commit)
		}
		tx.ID = history.NewID(1, t.client, t.sequence)
		tx.Due, tx.Sent, tx.Try, tx.End = t.try, t.try, t.try, t.commit+t.after
		from, to := r.pick(rng, accounts), r.pick(rng, accounts)
		for from == to {
			to = r.pick(rng, accounts)
		}
		amount := min(1+rng.Int64N(10_000), accounts[from].Value)
		torn := r.skews > 0 && i%(r.count/r.skews) == r.count/r.skews/2
		if torn {
			q.see(&accounts[from])
		}
		lost := r.lost > 0 && i%(r.count/r.lost) == r.count/r.lost/2
		for i, n := range [2]uint64{from, to} {
			a := &accounts[n]
			op := history.Op{Object: n, Write: true, Observed: true, Amount: amount, Version: a.Version, Value: a.Value, Writer: a.Writer}
			if i == 0 {
				op.Amount = -amount
			}
			if tx.Ops[i] = op; lost {
				continue
			}
			a.Value, a.Version, a.Writer = a.Value+op.Amount, a.Version+1, tx.ID
			try.Check(end.Row(history.Row{Transaction: tx.ID, Number: uint32(i), Object: n, Amount: op.Amount, Version: a.Version}))
		}
		try.Check(out.Client(int(t.client)).Append(&tx))
		if torn {
			q.see(&accounts[to])
			q.end(t.commit)
		}
		begun[0] = next(t.client, t.sequence+1, tx.End)
		heap.Fix(&begun, 0)
	}
}

// auditor is a client that reads all accounts at once.
type auditor struct {
	out      *history.ClientWriter
	accounts []history.Object
	id       history.ID // of its last audit
	ops      []history.Op
	until    int64 // when that ended
}

// The kinds of the bank, as a history's header declares them.
const (
	inquiry = 1*history.Numbered | history.ReadOnly
	audit   = 1*history.Numbered | history.ReadOnly | history.Background
)

func (a *auditor) audit(at int64) {
	a.id++
	a.ops = a.ops[:0]
	for i := range a.accounts {
		a.ops = append(a.ops, seen(&a.accounts[i]))
	}
	began := max(a.until, at-500)
	a.until = max(began, at+500)
	try.Check(a.out.Append(&history.Transaction{
		ID: a.id, Kind: audit, Outcome: history.Committed, Attempts: 1, Due: began, Sent: began, Try: began, End: a.until, Ops: a.ops,
	}))
}

// inquirer is a client that reads one account after the other.
type inquirer struct {
	out   *history.ClientWriter
	id    history.ID
	ops   []history.Op
	until int64
}

func (q *inquirer) see(a *history.Object) { q.ops = append(q.ops, seen(a)) }

func (q *inquirer) end(at int64) {
	q.id++
	began := max(q.until, at-500)
	q.until = max(began, at+500)
	try.Check(q.out.Append(&history.Transaction{
		ID: q.id, Kind: inquiry, Outcome: history.Committed, Attempts: 1, Due: began, Sent: began, Try: began, End: q.until, Ops: q.ops,
	}))
	q.ops = q.ops[:0]
}

func seen(a *history.Object) history.Op {
	return history.Op{Object: a.N, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer}
}

func (r recording) pick(rng *rand.Rand, accounts []history.Object) uint64 {
	if r.hot > 0 && rng.IntN(2) == 0 {
		return rng.Uint64N(r.hot)
	}
	return rng.Uint64N(uint64(len(accounts)))
}

// loaded returns the header of a recorded run and the accounts as its load made them.
func loaded(folder string) (history.Header, []history.Object) {
	in := try.Must(history.Open(folder))
	defer in.Close()
	end := try.Must(history.OpenEnd(folder))
	defer end.Close()
	header := in.Header()
	header.Keys["audits"] = "0"
	accounts := make([]history.Object, header.Objects)
	for a, err := range end.Objects() {
		try.Check(err)
		accounts[a.N] = history.Object{N: a.N, Value: a.Value}
	}
	for row, err := range end.Rows() {
		try.Check(err)
		accounts[row.Object].Value -= row.Amount
	}
	if len(accounts) < 2 {
		try.Fail("the sample in %s has too few accounts", folder)
	}
	return header, accounts
}

// checks measures how fast recorded transfers are checked, and in how much memory.
func (s *suite) checks() {
	sample := filepath.Join(s.dir, "sample")
	defer os.RemoveAll(sample)
	s.command("run", "bank", "--db=memory:", "--seed=1", "--accounts=1000000", "--count=1", "--audits=0", "--warmup=0s", "--out="+sample)
	for _, c := range []struct {
		name string
		recording
		wanted string
	}{
		{"uniform, 16 clients", recording{clients: 16, count: s.transactions}, "≥ 3000000"},
		{"half on 100 accounts, 4,096 clients", recording{clients: 4096, count: s.transactions, hot: 100}, "≥ 1000000"},
	} {
		s.checkRecorded(sample, "check bank: 1,000,000 accounts, "+c.name, c.recording, c.wanted)
	}
}

func (s *suite) checkRecorded(sample, name string, r recording, wanted string) {
	dir := filepath.Join(s.dir, "recorded")
	defer os.RemoveAll(dir)
	r.record(sample, dir)
	// The first check measures the run, which a run does by itself.
	s.command("check", dir)
	s.timeCheck(name, "transactions", dir, r.count, wanted, "< 1 GB")
}

// timeCheck checks a recorded directory several times, each in a process of its own. The shortest time counts,
// because other programs only add to it.
func (s *suite) timeCheck(name, unit, dir string, count int, wanted, memory string) {
	var least usage
	for range min(s.repeats, 3) {
		one := s.measure("VALID", s.stroppy, "check", dir)
		least.least(one)
	}
	s.row(name+": "+unit+" per CPU-second", "%.0f", float64(count)/least.cpu, 0, wanted)
	s.row(name+": "+unit+" a second", "%.0f", float64(count)/least.seconds, 0, "")
	s.row(name+": memory", "%.0f MB", least.memory/1e6, 0, memory)
}
