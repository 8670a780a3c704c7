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
	auditor := reader{out: out.Client(r.clients), kind: audit, id: history.NewID(1, uint64(r.clients), 0)}
	inquirer := reader{out: out.Client(r.clients + 1), kind: inquiry, id: history.NewID(1, uint64(r.clients)+1, 0)}
	for i := range r.count {
		t := begun[0]
		if r.audits > 0 && i%(r.count/r.audits) == 0 {
			for i := range accounts {
				auditor.see(&accounts[i])
			}
			auditor.end(t.commit)
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
			inquirer.see(&accounts[from])
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
			inquirer.see(&accounts[to])
			inquirer.end(t.commit)
		}
		begun[0] = next(t.client, t.sequence+1, tx.End)
		heap.Fix(&begun, 0)
	}
}

// The kinds of the bank, as a history's header declares them.
const (
	inquiry = 1*history.Numbered | history.ReadOnly
	audit   = 1*history.Numbered | history.ReadOnly | history.Background
)

// reader is a client that reads accounts: all at once as an audit, or one after the other as an inquiry.
type reader struct {
	out   *history.ClientWriter
	kind  history.Kind
	id    history.ID // of its last transaction
	ops   []history.Op
	until int64 // when that ended
}

// see adds an account, as it is now, to the next transaction.
func (r *reader) see(a *history.Object) {
	r.ops = append(r.ops, history.Op{Object: a.N, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
}

// end ends the transaction a moment after a commit.
func (r *reader) end(at int64) {
	r.id++
	began := max(r.until, at-500)
	r.until = max(began, at+500)
	try.Check(r.out.Append(&history.Transaction{
		ID: r.id, Kind: r.kind, Outcome: history.Committed, Attempts: 1, Due: began, Sent: began, Try: began, End: r.until, Ops: r.ops,
	}))
	r.ops = r.ops[:0]
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
