package totals

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// violation is one error of a database.
type violation struct {
	name      string
	make      func(w *world)
	expect    isolation.Level // the claim; default: strict-serializable
	audited   bool
	check     string // the check that must be invalid
	finds     wanted // a finding of it
	also      string // other checks that are invalid
	tolerated bool   // the claim allows it: the verdict stays valid
}

// writeSkew adds two joint transfers that each read what the other changes.
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

// anomaly wants an anomaly with this name.
func anomaly(name string) wanted {
	return func(f check.Finding) bool { return f.Anomaly == name }
}

// firstID and secondID are the IDs of the first two transactions of a world.
var firstID, secondID = history.NewID(1, 0, 0), history.NewID(1, 0, 1)

var violations = []violation{
	{name: "money made", check: check.Total, finds: one(func(f fact.Sum) bool { return f.End-f.Load == 7 }), also: check.Ledger, make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[1].Value += 7
	}},
	{name: "account missing", check: check.Total, finds: only(fact.Objects{Noun: "account", Found: 8, Made: 8}), make: func(w *world) {
		w.ObjectRows = w.ObjectRows[:7]
		w.transfer(0, 1, 10)
		w.ObjectRows = append(w.ObjectRows, history.Object{N: 6, Value: opening})
	}},
	{name: "swap behind the ledger's back", check: check.Ledger, finds: one(func(f fact.Books) bool { return f.Balance-f.Want == -5 }), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[1].Value -= 5
		w.ObjectRows[2].Value += 5
	}},
	{name: "below zero", check: check.NonNegative, finds: one(func(f fact.Negative) bool { return f.Balance == -100 && f.Object == "#0" }), make: func(w *world) {
		w.transfer(0, 1, opening+100)
	}},
	{name: "unexpected account", check: check.Ledger, finds: one(func(f fact.ForeignLeg) bool { return f.By == firstID }), make: func(w *world) {
		w.transfer(0, 1, 1)
		w.LedgerRows[0].Object = 99
	}, also: "serializable strict durable exactly-once"},
	{name: "acknowledged and lost", check: check.Durable, finds: only(fact.Lost{By: secondID}), make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := w.begin(kindTransfer)
		w.see(tx, 2)
		w.see(tx, 3)
		for i, amount := range []int64{-5, 5} {
			tx.Ops[i].Write, tx.Ops[i].Amount = true, amount
		}
	}},
	{name: "ledger row deleted", check: check.Durable, finds: only(fact.Altered{By: firstID}), also: check.Ledger, make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = w.LedgerRows[1:]
	}},
	{name: "other legs than were sent", check: check.Durable, finds: only(fact.Altered{By: firstID}), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[0].Amount, w.LedgerRows[1].Amount = -11, 11
		w.ObjectRows[0].Value, w.ObjectRows[1].Value = opening-11, opening+11
	}},
	{name: "aborted, yet applied", check: check.NoGhost, finds: only(fact.Ghost{By: firstID, Outcome: history.Aborted}), make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.Txns[i].Outcome = history.Aborted
	}},
	{name: "never sent", check: check.NoGhost, finds: only(fact.NeverSent{By: secondID}), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.transfer(2, 3, 10)
		w.Txns = w.Txns[:1]
	}},
	{name: "closed, yet applied", check: check.NoGhost, finds: only(fact.ClosedGhost{By: firstID}), make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.Txns[i].Outcome, w.Txns[i].LookedUp = history.Aborted, true
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: w.Txns[i].ID, Mark: history.Tombstone})
	}},
	{name: "closed and never sent", check: check.NoGhost, finds: only(fact.NeverSent{By: history.NewID(1, 0, 7), Tombstone: true}), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: history.NewID(1, 0, 7), Mark: history.Tombstone})
	}},
	{name: "a leg of another number", check: check.Durable, finds: only(fact.Altered{By: firstID}), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[1].Number = 2
	}},
	{name: "two legs of one number", check: check.Durable, finds: only(fact.Altered{By: firstID}), make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows[1].Number = 0
	}},
	{name: "legs in another order", check: check.Durable, finds: only(fact.Altered{By: firstID, Unknown: true}), make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := &w.Txns[0]
		tx.Outcome = history.Unknown
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
		w.LedgerRows[0].Number, w.LedgerRows[1].Number = 1, 0
	}},
	{name: "applied twice, seen at the end", check: check.ExactlyOnce, finds: one(func(f fact.TwoVersions) bool { return f.By == firstID && !f.Open }), also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
	}},
	{name: "applied twice, seen by the next", check: check.ExactlyOnce, finds: one(func(f fact.TwoVersions) bool { return f.By == firstID && !f.Open }), also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
		w.transfer(0, 2, 10)
	}},
	{name: "leg twice in the ledger", check: check.ExactlyOnce, finds: only(fact.Twice{By: firstID}), also: "total ledger", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.LedgerRows = append(w.LedgerRows, w.LedgerRows[0])
		w.LedgerRows[2].Version = 2
		w.ObjectRows[0].Value -= 10
		w.ObjectRows[0].Version++
	}},
	{name: "lost update", check: check.Serializable, finds: anomaly("lost update (P4)"), also: "total ledger strict", make: lostUpdate},
	{name: "lost update named by the ledger at a weak claim", check: check.Ledger, finds: one(func(f fact.SameVersion) bool { return f.First.ID == firstID && f.Second.ID == secondID && !f.Ledger }),
		also: "total serializable strict", make: lostUpdate, expect: isolation.ReadCommitted},
	{name: "dirty read", check: check.Serializable, finds: anomaly(dirtyRead), also: "strict", make: func(w *world) {
		i := w.transfer(0, 1, 10)
		w.inquiry(0)
		dirty := &w.Txns[i]
		dirty.Outcome, dirty.Reason = history.Rejected, noFunds
		w.LedgerRows = nil
		w.ObjectRows[0] = history.Object{N: 0, Value: opening}
		w.ObjectRows[1] = history.Object{N: 1, Value: opening}
	}},
	{name: "garbage read", check: check.Serializable, finds: anomaly(garbageRead), also: "strict", make: func(w *world) {
		w.transfer(0, 1, 10)
		w.inquiry(0)
		w.Txns[1].Ops[0].Value++
	}},
	{name: "read skew", check: check.Serializable, finds: anomaly("read skew (G-single)"), also: "strict", make: func(w *world) {
		i := w.inquiry(1)
		w.transfer(0, 1, 10)
		w.see(&w.Txns[i], 0)
	}},
	{name: "read skew breaks a claim of snapshot isolation", check: check.Serializable, finds: anomaly("read skew (G-single)"), also: "strict",
		expect: isolation.SnapshotIsolation, make: func(w *world) {
			i := w.inquiry(1)
			w.transfer(0, 1, 10)
			w.see(&w.Txns[i], 0)
		}},
	{name: "write skew", check: check.Serializable, finds: anomaly("write skew (G2-item)"), also: "strict", make: writeSkew},
	{name: "write skew is what snapshot isolation allows", check: check.Serializable, finds: anomaly("write skew (G2-item)"), also: "strict",
		expect: isolation.SnapshotIsolation, make: writeSkew, tolerated: true},
	{name: "long fork", check: check.Serializable, finds: anomaly("long fork (G-nonadjacent)"), also: "strict", expect: isolation.SnapshotIsolation, make: longFork},
	{name: "circular information flow", check: check.Serializable, finds: anomaly("circular information flow (G1c)"), also: "strict", expect: isolation.ReadCommitted, make: func(w *world) {
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
	{name: "dirty write", check: check.Serializable, finds: anomaly("dirty write (G0)"), also: "strict", expect: isolation.ReadUncommitted, make: func(w *world) {
		w.begin(kindTransfer)
		w.begin(kindTransfer)
		t1, t2 := &w.Txns[0], &w.Txns[1]
		w.leg(t1, 0, -5)
		w.leg(t2, 0, -5)
		w.leg(t2, 1, 5)
		w.leg(t1, 1, 5)
	}},
	{name: "stale read", check: check.Strict, finds: anomaly("stale read (G-single-realtime)"), make: func(w *world) {
		i := w.inquiry(0)
		w.transfer(0, 1, 10)
		stale := &w.Txns[i]
		stale.Try, stale.End = w.now+5000, w.now+6000
	}},
	{name: "stale read is what serializability allows", check: check.Strict, finds: anomaly("stale read (G-single-realtime)"), expect: isolation.Serializable, tolerated: true,
		make: func(w *world) {
			i := w.inquiry(0)
			w.transfer(0, 1, 10)
			stale := &w.Txns[i]
			stale.Try, stale.End = w.now+5000, w.now+6000
		}},
	{name: "audit of another total", check: check.Audits, finds: one(func(f fact.AuditSum) bool { return f.Saw-f.Total == -4 }), audited: true, also: "serializable strict", make: func(w *world) {
		w.transfer(0, 1, 10)
		tx := w.begin(kindAudit)
		for n := range w.ObjectRows {
			w.see(tx, uint64(n))
		}
		tx.Ops[3].Value -= 4
	}},
	{name: "audit of no consistent cut", check: check.Audits, finds: one(func(f fact.AuditTorn) bool { return f.By == firstID }), audited: true, also: "serializable strict", make: func(w *world) {
		tx := w.begin(kindAudit)
		w.see(tx, 0)
		w.transfer(0, 1, 10)
		w.see(&w.Txns[0], 1)
	}},
	{name: "an audit is not to blame for the skew of an inquiry", check: check.Serializable, finds: anomaly("long fork (G-nonadjacent)"), also: "strict",
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
	{name: "dirty write names the account", check: check.Serializable, finds: one(func(f fact.Cycle) bool {
		return slices.ContainsFunc(f.Steps, func(d fact.Dependency) bool { return d.Kind == "ww" && d.Version == 1 && d.Object == "#0" })
	}), also: "strict",
		expect: isolation.ReadUncommitted, make: func(w *world) {
			w.begin(kindTransfer)
			w.begin(kindTransfer)
			t1, t2 := &w.Txns[0], &w.Txns[1]
			w.leg(t1, 0, -5)
			w.leg(t2, 0, -5)
			w.leg(t2, 1, 5)
			w.leg(t1, 1, 5)
			for _, tx := range []*history.Transaction{t1, t2} { // no reads, like an atomic style without RETURNING
				for i := range tx.Ops {
					tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
				}
			}
		}},
}

// longFork adds two inquiries that see two independent transfers in opposite orders.
func longFork(w *world) {
	r1 := w.inquiry(0)
	r2 := w.inquiry(2)
	w.transfer(0, 1, 10)
	w.transfer(2, 3, 10)
	w.see(&w.Txns[r1], 2)
	w.see(&w.Txns[r2], 0)
}
