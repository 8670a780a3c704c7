package totals

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// showForks passes on the versions that two transactions made, as violations of a check.
func (b *balances) showForks(name, anomaly string) {
	if b.Input.OnViolation == nil {
		return
	}
	for _, f := range b.chain.forks {
		s, version := b.slotAt(f.pos)
		for _, t := range [...][2]uint32{{f.first, f.second}, {f.second, f.first}} {
			what := fact.SameVersion{First: b.idMember(t[0]), Second: b.idMember(t[1]), Object: b.Object(s.n), Version: uint64(version)}
			b.Show(name, anomaly, what.First.ID, what.Object, what)
		}
	}
}

// showOdd passes on a read that no order explains, with its reader and the last transfer that it saw.
func (b *balances) showOdd(name, anomaly string, odd oddRead) {
	if b.Input.OnViolation == nil {
		return
	}
	what := fact.ReadAs{
		Reader: b.IDOf(odd.reader), Writer: odd.last, Object: b.Object(odd.account), Version: odd.version, Balance: odd.balance,
	}
	b.Show(name, anomaly, what.Reader, what.Object, what)
	if odd.last != 0 {
		b.Show(name, anomaly, odd.last, what.Object, what)
	}
}

func (o *order) showCycle(name, anomaly string, steps []graph.Step) {
	if o.b.Input.OnViolation == nil {
		return
	}
	for _, s := range steps {
		what := o.dependency(s)
		o.b.Show(name, anomaly, what.From.ID, what.Object, what)
	}
}

// showGroup returns a function that passes on, as violations of a check, the transactions of a component
// without a reported cycle.
func (b *balances) showGroup(name string) func(level isolation.Level, component []uint32) {
	return func(level isolation.Level, component []uint32) {
		for _, t := range component {
			anomaly := "cycle that is " + isolation.ForbiddenBy(level)
			b.Show(name, anomaly, b.IDOf(t), "", fact.Component{By: b.IDOf(t), All: len(component)})
		}
	}
}
