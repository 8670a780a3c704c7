package check

import (
	"fmt"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kvFinding is what was found of one kind of violation: how often, and the first few.
type kvFinding struct {
	count int
	told  []string
	ids   []history.ID
}

// add counts one violation, which tx shows; what tells it in words if somebody wants
// to know. Others take part in it.
func (f *kvFinding) add(k *kv, check, anomaly string, tx history.ID, n uint64, what func() string, others ...history.ID) {
	f.count++
	keep := len(f.told) < some
	if !keep && k.in.Tell == nil {
		return
	}
	text := what()
	if keep {
		f.told = append(f.told, text)
		f.ids = append(append(f.ids, tx), others...)
	}
	if k.in.Tell != nil {
		k.in.Tell(Violation{check, anomaly, tx, k.in.Name(n), text})
	}
}

// text tells what was found: how often, if it is more than what is told.
func (f *kvFinding) text() string {
	text := strings.Join(f.told, "; ")
	if f.count > len(f.told) {
		text += fmt.Sprintf("; and %d more", f.count-len(f.told))
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// kvJudged makes a result of what was found; without anything it is valid.
func kvJudged(name, valid string, required bool, found ...*kvFinding) Result {
	r := Result{Name: name, Status: Valid, Required: required, Detail: valid}
	var told []string
	for _, f := range found {
		if f.count == 0 {
			continue
		}
		r.Status = Invalid
		told = append(told, f.text())
		r.Witness = append(r.Witness, f.ids...)
	}
	if r.Status == Invalid {
		r.Detail = strings.Join(told, "\n")
	}
	return r
}

// anomaly adds to an invalid result what its violations are called.
func (r Result) anomaly(name string, forbidden isolation.Level, f *kvFinding) Result {
	if f.count > 0 {
		r.Anomalies = append(r.Anomalies, Anomaly{Name: name, Forbidden: forbidden, Count: f.count, Detail: f.text(), Witness: once(f.ids)})
	}
	return r
}

// promises says that the claim forbids what a level forbids; where nobody knows what
// is claimed, it does.
func (k *kv) promises(level isolation.Level) bool {
	return k.in.Expect >= level || k.in.Expect == isolation.Unknown
}

func (k *kv) values() Result {
	required := k.wrongRead.count > 0 || k.promises(isolation.ReadCommitted) || k.dirtyRead.count == 0
	r := kvJudged(Values, fmt.Sprintf("%s, each as the load or a transaction had written it.", plural(k.reads, "value")+" read"), required, &k.wrongRead, &k.dirtyRead)
	return r.anomaly("dirty read (G1a)", isolation.ReadCommitted, &k.dirtyRead)
}

// strict says that the verdict counts what only real time forbids.
func (k *kv) strict() bool { return k.in.Expect >= isolation.StrictSerializable }

func (k *kv) fresh() Result {
	r := kvJudged(Fresh, "No read returned what an acknowledged write had replaced before.", k.strict(), &k.stale)
	return r.anomaly("stale read", isolation.StrictSerializable, &k.stale)
}

func (k *kv) noLostUpdate() Result {
	valid := "No transaction both read and wrote a record."
	if k.updates > 0 {
		valid = fmt.Sprintf("%s both read and wrote a record, no two in the place of one value.", plural(k.updates, "transaction"))
	}
	r := kvJudged(NoLostUpdate, valid, k.promises(isolation.SnapshotIsolation), &k.lost)
	return r.anomaly("lost update (P4)", isolation.SnapshotIsolation, &k.lost)
}

func (k *kv) scanned() Result {
	required := k.strict() || k.hole.count > 0 || k.staleScan.count == 0
	valid := "No scan was made."
	if k.scans > 0 {
		valid = fmt.Sprintf("%s, each in order and with all that was there.", plural(k.scans, "scan"))
	}
	r := kvJudged(Scans, valid, required, &k.hole, &k.staleScan)
	return r.anomaly("stale scan", isolation.StrictSerializable, &k.staleScan)
}

func (k *kv) linearizable() Result {
	return kvJudged(Linearizable, fmt.Sprintf("Of %s written the reads and writes of each have an order that agrees with real time.", plural(uint64(len(k.keys)), "record")),
		k.strict(), &k.disordered)
}

func (k *kv) durable() Result {
	return kvJudged(Durable, fmt.Sprintf("%s, each with a value that the last acknowledged write allows.", plural(k.ends, "record")), true, &k.vanished)
}

func (k *kv) noGhost() Result {
	return kvJudged(NoGhost, fmt.Sprintf("All values in %s are of the load or of one of %s that nobody refused.", plural(k.ends, "record"), plural(k.writers, "write")), true, &k.ghosts)
}
