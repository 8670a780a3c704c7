package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
)

// The tests' own bank: accounts with a balance, a version and the last transfer, and a ledger with one key per
// transfer.
const (
	accountPrefix = "bank/account/"
	ledgerPrefix  = "bank/ledger/"
	opening       = 1000
)

var spaces = []db.Keyspace{{Prefix: []byte(accountPrefix), Columns: []db.Column{
	{Name: "balance", Offset: 0, Additive: true, NonNegative: true},
	{Name: "version", Offset: 8, Additive: true},
	{Name: "last", Offset: 16},
}}}

func accountKey(n int) []byte   { return fmt.Appendf(nil, "%s%06d", accountPrefix, n) }
func ledgerKey(id int64) []byte { return fmt.Appendf(nil, "%s%016x", ledgerPrefix, id) }

type account struct{ balance, version, last int64 }

func (a account) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(a.balance))
	b = binary.BigEndian.AppendUint64(b, uint64(a.version))
	return binary.BigEndian.AppendUint64(b, uint64(a.last))
}

func decodeAccount(b []byte) account {
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
	return account{n(0), n(8), n(16)}
}

// leg is the effect of a transfer on one account, and the account's state that the transfer saw.
type leg struct {
	n      int
	write  bool
	amount int64
	saw    account
}

type kind int

const (
	transfer kind = iota
	joint
	inquiry
)

type outcome int

const (
	undecided outcome = iota
	committed
	rejected
	aborted
	lied    // reported as aborted, but found in the ledger
	settled // unknown; the look-up found it absent and closed its id
)

// done is one transaction as its client saw it. Start and end are ticks of one clock.
type done struct {
	id         int64
	kind       kind
	outcome    outcome
	legs       []leg
	start, end int64
}

type bank struct {
	t        *testing.T
	d        *Database
	accounts int
	clock    atomic.Int64
	history  [][]done // by client
}

func openBank(t *testing.T, url string, accounts int) *bank {
	t.Helper()
	d, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Constrain(spaces); err != nil {
		t.Fatal(err)
	}
	b := &bank{t: t, d: d, accounts: accounts}
	s := b.session()
	for n := 0; n < accounts; {
		must(t, s.Begin(t.Context(), false))
		for range min(500, accounts-n) {
			s.Set(accountKey(n), account{balance: opening}.encode())
			n++
		}
		if err := s.Commit(t.Context()); err != nil { // an honest refusal: the batch is idempotent
			must(t, s.Reset(t.Context()))
			n = 0
		}
	}
	return b
}

func (b *bank) session() db.KVSession {
	s, err := b.d.KVSession(b.t.Context(), db.SessionOptions{})
	must(b.t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drive runs count transactions on 64 clients.
func (b *bank) drive(seed uint64, count int) {
	const clients = 64
	b.history = make([][]done, clients)
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			c := client{bank: b, number: i, session: b.session(), random: rand.New(rand.NewPCG(seed, uint64(i)))}
			for range count / clients {
				b.history[i] = append(b.history[i], c.next())
			}
		})
	}
	wait.Wait()
}

type client struct {
	*bank
	number   int
	sequence int64
	session  db.KVSession
	random   *rand.Rand
	last     []int // accounts of its last transfer
}

// next runs one transaction: 70 % transfers, 10 % joint ones, 20 % inquiries.
func (c *client) next() done {
	c.sequence++
	tx := done{id: int64(c.number)<<32 | c.sequence}
	from := c.random.IntN(c.accounts)
	to := (from + 1 + c.random.IntN(c.accounts-1)) % c.accounts
	amount := 1 + c.random.Int64N(opening)
	switch p := c.random.IntN(100); {
	case p < 70:
		tx.legs = []leg{{n: from, write: true, amount: -amount}, {n: to, write: true, amount: amount}}
	case p < 80:
		tx.kind = joint
		for to == from^1 {
			to = (from + 1 + c.random.IntN(c.accounts-1)) % c.accounts
		}
		tx.legs = []leg{{n: from, write: true, amount: -amount / 10}, {n: from ^ 1}, {n: to, write: true, amount: amount / 10}}
	default:
		tx.kind = inquiry
		tx.legs = []leg{{n: from}, {n: from ^ 1}}
		if p%2 == 0 && c.last != nil {
			tx.legs = []leg{{n: c.last[0]}, {n: c.last[1]}}
		}
	}
	if tx.kind != inquiry {
		c.last = []int{from, to}
	}
	tx.start = c.clock.Add(1)
	c.run(&tx)
	tx.end = c.clock.Add(1)
	return tx
}

func (c *client) run(tx *done) {
	ctx := context.Background()
	for range 20 {
		err := c.try(ctx, tx)
		switch {
		case err == nil:
			return
		case db.ConstraintOf(err) == db.CheckFailed:
			tx.outcome = rejected
			return
		case db.ClassOf(err) == db.Unknown:
			must(c.t, c.session.Reset(ctx))
			c.settle(ctx, tx)
			return
		case db.ClassOf(err) != db.Aborted:
			c.t.Errorf("transaction %x: %v", tx.id, err)
			return
		}
	}
	tx.outcome = aborted
}

func (c *client) try(ctx context.Context, tx *done) error {
	if err := c.session.Begin(ctx, tx.kind == inquiry); err != nil {
		return err
	}
	var keys [][]byte
	for _, l := range tx.legs {
		keys = append(keys, accountKey(l.n))
	}
	if tx.kind != inquiry {
		keys = append(keys, ledgerKey(tx.id))
	}
	out := make([]db.Entry, len(keys))
	if err := c.session.Read(ctx, keys, out); err != nil {
		return err
	}
	for i := range tx.legs {
		if !out[i].Found {
			return fmt.Errorf("account %d is not there", tx.legs[i].n)
		}
		tx.legs[i].saw = decodeAccount(out[i].Value)
	}
	if tx.kind != inquiry {
		if out[len(out)-1].Found {
			tx.outcome = lied
			c.session.Rollback()
			return nil
		}
		var ledger []byte
		for i, l := range tx.legs {
			if !l.write {
				continue
			}
			after := account{l.saw.balance + l.amount, l.saw.version + 1, tx.id}
			c.session.Set(keys[i], after.encode())
			ledger = append(ledger, account{int64(l.n), after.version, l.amount}.encode()...)
		}
		c.session.Set(keys[len(keys)-1], ledger)
	}
	err := c.session.Commit(ctx)
	if err == nil {
		tx.outcome = committed
	}
	return err
}

// settle looks up an unknown transfer and closes its id.
func (c *client) settle(ctx context.Context, tx *done) {
	for {
		must(c.t, c.session.Begin(ctx, false))
		key := ledgerKey(tx.id)
		out := make([]db.Entry, 1)
		must(c.t, c.session.Read(ctx, [][]byte{key}, out))
		if out[0].Found {
			tx.outcome = committed
			if len(out[0].Value) == 0 {
				tx.outcome = settled
			}
			c.session.Rollback()
			return
		}
		c.session.Set(key, nil)
		switch err := c.session.Commit(ctx); {
		case err == nil:
			tx.outcome = settled
			return
		case db.ClassOf(err) == db.Unknown:
			must(c.t, c.session.Reset(ctx))
		case db.ClassOf(err) != db.Aborted:
			c.t.Errorf("settle %x: %v", tx.id, err)
			return
		}
	}
}

// end is the end state and the part of the history that belongs to it.
type end struct {
	*bank
	all      []done
	byID     map[int64]done
	accounts []account
	ledger   map[int64][]leg // saw.version is the version that the leg made; none for a tombstone
}

func (b *bank) finish() *end {
	e := &end{bank: b, byID: make(map[int64]done), ledger: make(map[int64][]leg)}
	for _, h := range b.history {
		e.all = append(e.all, h...)
	}
	for _, tx := range e.all {
		e.byID[tx.id] = tx
	}
	last := ""
	must(b.t, b.session().Scan(b.t.Context(), []byte("bank/"), []byte("bank0"), func(key, value []byte) error {
		if string(key) <= last {
			return fmt.Errorf("%s after %s", key, last)
		}
		last = string(key)
		if len(key) < len(ledgerPrefix) || string(key[:len(ledgerPrefix)]) != ledgerPrefix {
			e.accounts = append(e.accounts, decodeAccount(value))
			return nil
		}
		var id int64
		if _, err := fmt.Sscanf(string(key[len(ledgerPrefix):]), "%x", &id); err != nil {
			return err
		}
		e.ledger[id] = nil
		for entry := range slices.Chunk(value, 24) {
			l := decodeAccount(entry)
			e.ledger[id] = append(e.ledger[id], leg{n: int(l.balance), amount: l.last, saw: account{version: l.version}})
		}
		return nil
	}))
	if len(e.accounts) != b.accounts {
		b.t.Fatalf("%d accounts at the end, want %d", len(e.accounts), b.accounts)
	}
	return e
}
