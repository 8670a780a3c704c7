package tpcb

import (
	"context"
	"encoding/binary"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// balancePrefix is that of the rows without versions, in a key-value store that adds
// without reading. A row's value is its balance, as db.AddSession adds to it.
const balancePrefix = "stroppy-tpcb/balance/"

// balanceSpace declares the rows without versions.
func balanceSpace() db.Keyspace {
	return db.Keyspace{Prefix: []byte(balancePrefix), Columns: []db.Column{{Name: "balance", LittleEndian: true, Additive: true}}}
}

func appendBalance(dst []byte, balance int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(balance))
}

func parseBalance(value []byte) (balance int64, ok bool) {
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(value)), true
}

// addClient runs one client's transactions on rows without versions. It adds to all three
// rows and reads the account alone, whose balance TPC-B returns, so that only transactions
// on one account conflict. The read is no snapshot read: two transactions that saw one
// balance could both commit then, and no order would explain what they returned.
//
// A teller or a branch that is gone is made anew by adding to it; the end state shows what
// it lacks then.
type addClient struct {
	*workload.KVClient // which makes the transactions and looks them up
	adds               db.AddSession
	chooser            *chooser
	keeps              bool // a history

	key, entry []byte
	reads      [2][]byte // the account's key, and the transaction's own in the history
	found      [2]db.Entry
}

// Attempt implements load.Client.
func (c *addClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	return workload.Ended(tx, c.attempt(ctx, tx), workload.Rules{Missing: noSuchRow})
}

func (c *addClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.adds.Begin(ctx, false); err != nil {
		return err
	}
	c.reads[0] = c.appendKey(c.reads[0][:0], tx.Ops[opAccount].Object)
	reads := c.reads[:1]
	if c.keeps {
		c.reads[1] = workload.Hex.Append(append(c.reads[1][:0], historyPrefix...), uint64(tx.ID), workload.IDLength)
		reads = c.reads[:]
	}
	if err := c.adds.Read(ctx, reads, c.found[:len(reads)]); err != nil {
		return err
	}
	if c.keeps && c.found[1].Found {
		c.adds.Rollback()
		return workload.InLedger(c.found[1].Value)
	}
	if !c.found[0].Found {
		c.adds.Rollback()
		workload.Decide(tx, noSuchRow)
		return nil
	}
	balance, ok := parseBalance(c.found[0].Value)
	if !ok {
		c.adds.Rollback()
		return workload.UnreadableState(c.reads[0], c.found[0].Value)
	}
	workload.Observe(&tx.Ops[opAccount], balance, 0, 0)
	for i := range tx.Ops {
		c.key = c.appendKey(c.key[:0], tx.Ops[i].Object)
		c.adds.Add(c.key, tx.Ops[i].Amount)
	}
	if c.keeps {
		c.entry = c.chooser.appendPosting(c.entry[:0], tx)
		c.adds.Set(c.reads[1], c.entry)
	}
	err := c.adds.Commit(ctx)
	if err == nil {
		workload.Decide(tx, 0)
	}
	return err
}

func (c *addClient) appendKey(dst []byte, n uint64) []byte {
	k, id := c.chooser.size.place(n)
	return appendRowText(append(dst, balancePrefix...), k, id)
}
