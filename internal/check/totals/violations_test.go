package totals

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// violation is one way in which a database can be wrong, made by hand.
type violation struct {
	name      string
	make      func(w *world)
	expect    isolation.Level // the claim; strict-serializable if not given
	audited   bool
	check     string // that must be invalid
	says      string // in its detail
	also      string // checks that are invalid too
	tolerated bool   // the claim allows it: the verdict stays valid
}

// writeSkew lets two joint transfers each read what the other changes.
func writeSkew(w *world) {
	w.begin(kindJoint)
	t2 := w.begin(kindJoint)
	t1 := &w.Txns[len(w.Txns)-2]
	t1.End = t2.End // they overlap
	w.see(t1, 1)
	w.see(t2, 0)
	w.leg(t1, 0, -5)
	w.leg(t1, 2, 5)
	w.leg(t2, 1, -5)
	w.leg(t2, 3, 5)
}

func lostUpdate(w *world) {
	w.transfer(0, 1, 10)
	w.transfer(0, 2, 20)
	stale := w.Txns[0].Ops[0]
	second := &w.Txns[1]
	second.Ops[0] = stale
	second.Ops[0].Amount = -20
	second.Try, second.End = w.Txns[0].Try, w.Txns[0].End
	w.LedgerRows[2].Version = 1
	w.ObjectRows[0] = history.Object{N: 0, Value: opening - 20, Version: 1, Writer: second.ID}
}

var violations = []violation{
	{name: "money made", check: check.Total, says: "0.07 net appeared from nowhere", also: check.Ledger, make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[1].Value += 7
	}},
	{name: "account missing", check: check.Total, says: "not the same ones", make: func(w *world) {
		w.ObjectRows = w.ObjectRows[:7]
		w.transfer(0, 1, 10)
		w.ObjectRows = append(w.ObjectRows, history.Object{N: 6, Value: opening})
	}},
	{name: "swap behind the ledger's back", check: check.Ledger, says: "-0.05 off", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[1].Value -= 5
		w.ObjectRows[2].Value += 5
	}},
	{name: "below zero", check: check.NonNegative, says: "-1.00", make: func(w *world) {
		w.transfer(0, 1, opening+100)
	}},
	{name: "unexpected account", check: check.Ledger, says: "on an object that no load made", make: func(w *world) {
		w.transfer(0, 1, 1)
		w.LedgerRows[0].Object = 99
	}, also: "serializable strict durable exactly-once"},
	{name: "acknowledged and lost", check: check.Durable, says: "1-0-1", make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := w.begin(kindTransfer)
		w.see(tx, 2)
		w.see(tx, 3)
		for i, amount := range []int64{-5, 5} {
			tx.Ops[i].Write, tx.Ops[i].Amount = true, amount
		}
	}},
	{name: "ledger row deleted", check: check.Durable, says: "1-0-0", also: check.Ledger, make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = w.LedgerRows[1:]
	}},
	{name: "other legs than were sent", check: check.Durable, says: "1-0-0", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[0].Amount, w.LedgerRows[1].Amount = -11, 11
		w.ObjectRows[0].Value, w.ObjectRows[1].Value = opening-11, opening+11
	}},
	{name: "aborted, yet applied", check: check.NoGhost, says: "reported as not applied", make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.Txns[i].Outcome = history.Aborted
	}},
	{name: "never sent", check: check.NoGhost, says: "no client ever sent", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.transfer(2, 3, 10)
		w.Txns = w.Txns[:1]
	}},
	{name: "closed, yet applied", check: check.NoGhost, says: "closed by a look-up", make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.Txns[i].Outcome, w.Txns[i].LookedUp = history.Aborted, true
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: w.Txns[i].ID, Mark: history.Tombstone})
	}},
	{name: "closed and never sent", check: check.NoGhost, says: "1 transfer with a tombstone in the ledger that no client ever sent: 1-0-7", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: history.NewID(1, 0, 7), Mark: history.Tombstone})
	}},
	{name: "a leg of another number", check: check.Durable, says: "1 transfer whose legs in the ledger are not those that were acknowledged: 1-0-0", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[1].Number = 2
	}},
	{name: "two legs of one number", check: check.Durable, says: "1 transfer whose legs in the ledger are not those that were acknowledged: 1-0-0", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[1].Number = 0
	}},
	{name: "legs in another order", check: check.Durable, says: "1 transfer of unknown outcome whose legs in the ledger are not those that were sent: 1-0-0", make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := &w.Txns[0]
		tx.Outcome = history.Unknown
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
		w.LedgerRows[0].Number, w.LedgerRows[1].Number = 1, 0
	}},
	{name: "applied twice, seen at the end", check: check.ExactlyOnce, says: "applied twice", also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
	}},
	{name: "applied twice, seen by the next", check: check.ExactlyOnce, says: "applied twice", also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
		w.transfer(0, 2, 10)
	}},
	{name: "leg twice in the ledger", check: check.ExactlyOnce, says: "twice in the ledger", also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = append(w.LedgerRows, w.LedgerRows[0])
		w.LedgerRows[2].Version = 2
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
	}},
	{name: "lost update", check: check.Serializable, says: "lost update", also: "total ledger strict", make: lostUpdate},
	{name: "lost update named by the ledger at a weak claim", check: check.Ledger, says: "Transfer 1-0-0 and transfer 1-0-1 both made",
		also: "total serializable strict", make: lostUpdate, expect: isolation.ReadCommitted},
	{name: "dirty read", check: check.Serializable, says: "dirty read", also: "strict", make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.inquiry(0)
		dirty := &w.Txns[i]
		dirty.Outcome, dirty.Reason = history.Rejected, noFunds
		w.LedgerRows = nil
		w.ObjectRows[0] = history.Object{N: 0, Value: opening}
		w.ObjectRows[1] = history.Object{N: 1, Value: opening}
	}},
	{name: "garbage read", check: check.Serializable, says: "garbage read", also: "strict", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.inquiry(0)
		w.Txns[1].Ops[0].Value++
	}},
	{name: "read skew", check: check.Serializable, says: "read skew", also: "strict", make: func(w *world) {
		i := w.inquiry(1)
		w.transfer(0, 1, 10)
		w.see(&w.Txns[i], 0)
	}},
	{name: "read skew breaks a claim of snapshot isolation", check: check.Serializable, says: "read skew", also: "strict",
		expect: isolation.SnapshotIsolation, make: func(w *world) {
			i := w.inquiry(1)
			w.transfer(0, 1, 10)
			w.see(&w.Txns[i], 0)
		}},
	{name: "write skew", check: check.Serializable, says: "write skew", also: "strict", make: writeSkew},
	{name: "write skew is what snapshot isolation allows", check: check.Serializable, says: "write skew", also: "strict",
		expect: isolation.SnapshotIsolation, make: writeSkew, tolerated: true},
	{name: "long fork", check: check.Serializable, says: "long fork", also: "strict", expect: isolation.SnapshotIsolation, make: longFork},
	{name: "circular information flow", check: check.Serializable, says: "G1c", also: "strict", expect: isolation.ReadCommitted, make: func(w *world) {
		w.begin(kindJoint)
		w.begin(kindJoint)
		t1, t2 := &w.Txns[0], &w.Txns[1]
		w.leg(t1, 0, -5)
		w.leg(t1, 1, 5)
		w.see(t2, 0)
		w.leg(t2, 2, -5)
		w.leg(t2, 3, 5)
		w.see(t1, 2)
	}},
	{name: "dirty write", check: check.Serializable, says: "G0", also: "strict", expect: isolation.ReadUncommitted, make: func(w *world) {
		w.begin(kindTransfer)
		w.begin(kindTransfer)
		t1, t2 := &w.Txns[0], &w.Txns[1]
		w.leg(t1, 0, -5)
		w.leg(t2, 0, -5)
		w.leg(t2, 1, 5)
		w.leg(t1, 1, 5)
	}},
	{name: "stale read", check: check.Strict, says: "stale read", make: func(w *world) {
		i := w.inquiry(0)
		w.transfer(0, 1, 10)
		stale := &w.Txns[i]
		stale.Try, stale.End = w.now+5000, w.now+6000
	}},
	{name: "stale read is what serializability allows", check: check.Strict, says: "stale read", expect: isolation.Serializable, tolerated: true,
		make: func(w *world) {
			i := w.inquiry(0)
			w.transfer(0, 1, 10)
			stale := &w.Txns[i]
			stale.Try, stale.End = w.now+5000, w.now+6000
		}},
	{name: "audit of another total", check: check.Audits, says: "saw another total", audited: true, also: "serializable strict", make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := w.begin(kindAudit)
		for n := range w.ObjectRows {
			w.see(tx, uint64(n))
		}
		tx.Ops[3].Value -= 4
	}},
	{name: "audit of no consistent cut", check: check.Audits, says: "no consistent cut", audited: true, also: "serializable strict", make: func(w *world) {
		tx := w.begin(kindAudit)
		w.see(tx, 0)
		w.transfer(0, 1, 10)
		w.see(&w.Txns[0], 1)
	}},
	{name: "an audit is not to blame for the skew of an inquiry", check: check.Serializable, says: "long fork", also: "strict",
		audited: true, expect: isolation.ReadCommitted, tolerated: true, make: func(w *world) {
			inquiry := w.inquiry(2)
			w.transfer(2, 3, 10)
			audit := w.begin(kindAudit)
			for n := range w.ObjectRows {
				w.see(audit, uint64(n))
			}
			w.transfer(0, 1, 10)
			w.see(&w.Txns[inquiry], 0)
		}},
	{name: "dirty write names the account", check: check.Serializable, says: "made version 1 of account #0, which", also: "strict",
		expect: isolation.ReadUncommitted, make: func(w *world) {
			w.begin(kindTransfer)
			w.begin(kindTransfer)
			t1, t2 := &w.Txns[0], &w.Txns[1]
			w.leg(t1, 0, -5)
			w.leg(t2, 0, -5)
			w.leg(t2, 1, 5)
			w.leg(t1, 1, 5)
			for _, tx := range []*history.Transaction{t1, t2} { // no reads, as an atomic style without RETURNING has it
				for i := range tx.Ops {
					tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
				}
			}
		}},
}

// longFork lets two inquiries see two independent transfers in opposite orders.
func longFork(w *world) {
	r1 := w.inquiry(0)
	r2 := w.inquiry(2)
	w.transfer(0, 1, 10)
	w.transfer(2, 3, 10)
	w.see(&w.Txns[r1], 2)
	w.see(&w.Txns[r2], 0)
}
