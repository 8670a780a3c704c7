package check

import (
	"fmt"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Violation is one transaction that shows a violation. Of some there is no
// transaction, but an account alone.
type Violation struct {
	Check       string
	Anomaly     string     // of serializable and strict
	Transaction history.ID // 0: none
	Account     string     // as people know it; empty: none
	What        string     // in words
}

// witness hands over a violation, while it is being found. One that is handed
// over counts only if its check is invalid in the end.
func (b *bank) witness(check, anomaly string, id history.ID, account, what string) {
	if b.in.Tell != nil {
		b.in.Tell(Violation{check, anomaly, id, account, what})
	}
}

// named is the name of an account that somebody asks for.
func (b *bank) named(n uint64) string {
	if b.in.Tell == nil {
		return ""
	}
	return b.in.Name(n)
}

// tellForks hands over all versions that two transfers made.
func (b *bank) tellForks(check, anomaly string) {
	if b.in.Tell == nil {
		return
	}
	for _, f := range b.chain.forks {
		s, version := b.slotAt(f.pos)
		for _, t := range [...][2]uint32{{f.first, f.second}, {f.second, f.first}} {
			b.witness(check, anomaly, b.idOf(t[0]), b.in.Name(s.n), fmt.Sprintf("made version %d, and %v made it too", version, b.idOf(t[1])))
		}
	}
}

// tellOdd hands over a read that no order explains: its reader, and the transfer
// that it saw as the last one.
func (b *bank) tellOdd(check, anomaly string, odd oddRead) {
	if b.in.Tell == nil {
		return
	}
	account := b.in.Name(odd.account)
	b.witness(check, anomaly, b.idOf(odd.reader), account,
		fmt.Sprintf("read version %d with the balance %s as made by %v", odd.version, b.words.amount(odd.balance), odd.last))
	if odd.last != 0 {
		b.witness(check, anomaly, odd.last, account, fmt.Sprintf("was read by %v as the maker of version %d", b.idOf(odd.reader), odd.version))
	}
}

// tellCycle hands over every transaction of a cycle.
func (o *order) tellCycle(check, anomaly string, steps []step) {
	if o.b.in.Tell == nil {
		return
	}
	for _, s := range steps {
		account := ""
		if n, _, ok := o.meeting(s); ok && s.kind != rt {
			account = o.b.in.Name(n)
		}
		o.b.witness(check, anomaly, o.b.idOf(s.from), account, o.clause(s))
	}
}

// tellGroup hands over the transactions of a component of which no single cycle
// is told, because there are so many of its level.
func (b *bank) tellGroup(check string, level isolation.Level, component []uint32) {
	if b.in.Tell == nil {
		return
	}
	members := 0
	for _, t := range component {
		if int(t) < len(b.txns.list) { // else a barrier
			members++
		}
	}
	for _, t := range component {
		if int(t) < len(b.txns.list) {
			b.witness(check, "cycle that is forbidden from "+level.String(), b.idOf(t), "",
				fmt.Sprintf("is one of %d transactions of which each must come before every other", members))
		}
	}
}
