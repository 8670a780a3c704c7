package registers

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// findings are the violations of one kind; text is how a result has them.
type findings struct{ check.Findings }

// add counts one violation, which tx shows; what says it in words where they are
// wanted. Others take part in it.
func (f *findings) add(k *checker, name, anomaly string, tx history.ID, n uint64, what func() string, others ...history.ID) {
	if len(f.Texts) == check.Shown && k.in.OnViolation == nil {
		f.Count++
		return
	}
	text := what()
	f.Add(text, append([]history.ID{tx}, others...)...)
	if k.in.OnViolation != nil {
		k.in.OnViolation(check.Violation{Check: name, Anomaly: anomaly, Transaction: tx, Account: k.in.Name(n), What: text})
	}
}

func (f *findings) text() string { return check.Capital(f.String()) + "." }

// judged makes a result of what was found; without anything it is valid.
func judged(name, valid string, required bool, found ...*findings) check.Result {
	r := check.Result{Name: name, Status: check.Valid, Required: required, Detail: valid}
	var told []string
	for _, f := range found {
		if f.Count == 0 {
			continue
		}
		r.Status = check.Invalid
		told = append(told, f.text())
		r.Witness = append(r.Witness, f.IDs...)
	}
	if r.Status == check.Invalid {
		r.Detail = strings.Join(told, "\n")
	}
	return r
}

// named adds to a result what its violations are called.
func named(r check.Result, name string, forbidden isolation.Level, f *findings) check.Result {
	if f.Count > 0 {
		r.Anomalies = append(r.Anomalies, check.Anomaly{Name: name, Forbidden: forbidden, Count: f.Count, Detail: f.text(), Witness: check.Distinct(f.IDs)})
	}
	return r
}

// promises says that the claim forbids what a level forbids; where nobody knows what
// is claimed, it does.
func (k *checker) promises(level isolation.Level) bool {
	return k.in.Expect >= level || k.in.Expect == isolation.Unknown
}

func (k *checker) values() check.Result {
	required := k.wrongRead.Count > 0 || k.promises(isolation.ReadCommitted) || k.dirtyRead.Count == 0
	r := judged(Values, fmt.Sprintf("%s, each as the load or a transaction had written it.", check.Plural(k.reads, "value")+" read"), required, &k.wrongRead, &k.dirtyRead)
	return named(r, "dirty read (G1a)", isolation.ReadCommitted, &k.dirtyRead)
}

// strict says that the verdict counts what only real time forbids.
func (k *checker) strict() bool { return k.in.Expect >= isolation.StrictSerializable }

func (k *checker) fresh() check.Result {
	r := judged(Fresh, "No read returned what an acknowledged write had replaced before.", k.strict(), &k.stale)
	return named(r, "stale read", isolation.StrictSerializable, &k.stale)
}

func (k *checker) noLostUpdate() check.Result {
	valid := "No transaction both read and wrote a record."
	if k.updates > 0 {
		valid = fmt.Sprintf("%s both read and wrote a record, no two in the place of one value.", check.Plural(k.updates, "transaction"))
	}
	r := judged(NoLostUpdate, valid, k.promises(isolation.SnapshotIsolation), &k.lost)
	return named(r, "lost update (P4)", isolation.SnapshotIsolation, &k.lost)
}

func (k *checker) scanned() check.Result {
	required := k.strict() || k.hole.Count > 0 || k.staleScan.Count == 0
	valid := "No scan was made."
	if k.scans > 0 {
		valid = fmt.Sprintf("%s, each in order and with all that was there.", check.Plural(k.scans, "scan"))
	}
	r := judged(Scans, valid, required, &k.hole, &k.staleScan)
	return named(r, "stale scan", isolation.StrictSerializable, &k.staleScan)
}

func (k *checker) linearizable() check.Result {
	return judged(Linearizable, fmt.Sprintf("Of %s written the reads and writes of each have an order that agrees with real time.", check.Plural(uint64(len(k.keys)), "record")),
		k.strict(), &k.disordered)
}

func (k *checker) durable() check.Result {
	return judged(check.Durable, fmt.Sprintf("%s, each with a value that the last acknowledged write allows.", check.Plural(k.ends, "record")), true, &k.vanished)
}

func (k *checker) noGhost() check.Result {
	return judged(check.NoGhost, fmt.Sprintf("All values in %s are of the load or of one of %s that nobody refused.", check.Plural(k.ends, "record"), check.Plural(k.writers, "write")), true, &k.ghosts)
}
