package totals

import (
	"fmt"

	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

func (b *balances) reportForks(check, anomaly string) {
	for _, f := range b.chain.forks {
		s, version := b.slotAt(f.pos)
		for _, t := range [...][2]uint32{{f.first, f.second}, {f.second, f.first}} {
			b.Report(check, anomaly, b.IDOf(t[0]), b.NameToReport(s.n), fmt.Sprintf("made version %d, and %v made it too", version, b.IDOf(t[1])))
		}
	}
}

// reportOdd reports a read that no order explains: its reader, and the transfer
// that it saw as the last one.
func (b *balances) reportOdd(check, anomaly string, odd oddRead) {
	account := b.NameToReport(odd.account)
	b.Report(check, anomaly, b.IDOf(odd.reader), account,
		fmt.Sprintf("read version %d with the balance %s as made by %v", odd.version, b.Words.Amount(odd.balance), odd.last))
	if odd.last != 0 {
		b.Report(check, anomaly, odd.last, account, fmt.Sprintf("was read by %v as the maker of version %d", b.IDOf(odd.reader), odd.version))
	}
}

func (o *order) reportCycle(check, anomaly string, steps []graph.Step) {
	for _, s := range steps {
		account := ""
		if n, _, ok := o.meeting(s); ok && s.Kind != graph.Rt {
			account = o.b.NameToReport(n)
		}
		o.b.Report(check, anomaly, o.b.IDOf(s.From), account, o.clause(s))
	}
}

// reportGroup returns what reports, as violations of a check, the transactions of a component
// of which no single cycle is reported, because there are so many of its level.
func (b *balances) reportGroup(check string) func(level isolation.Level, component []uint32) {
	return func(level isolation.Level, component []uint32) {
		for _, t := range component {
			b.Report(check, "cycle that is forbidden from "+level.String(), b.IDOf(t), "",
				fmt.Sprintf("is one of %d transactions of which each must come before every other", len(component)))
		}
	}
}
