package registers

import (
	"cmp"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// recorded is a transaction of an anomaly as its history has it.
type recorded struct {
	history.Transaction
	kind       string // its name
	began      int64  // on the clock of its group
	ended      int64
	group      int
	start, end int64 // ns since its run's start
}

// explain gives the anomalies of results their edges and transactions: of the first
// instance of each, whose two transactions are its first two witnesses. It reads the history
// once more, and only where there is an anomaly.
func (k *checker) explain(results []check.Result) {
	records := map[history.ID]*recorded{}
	for _, r := range results {
		for _, a := range r.Anomalies {
			for _, id := range a.Witness[:min(2, len(a.Witness))] {
				records[id] = nil
			}
		}
	}
	missing := len(records)
	for number, source := range k.in.History {
		if missing == 0 {
			break
		}
		var damage error // the checks have reported it
		header := source.Header()
		for rec := range check.Each(&k.Watch, "the history", source.Transactions(), &damage) {
			if one, wanted := records[rec.ID]; wanted && one == nil {
				one = &recorded{
					Transaction: *rec.Transaction, kind: header.KindName(rec.Kind), group: k.group[number],
					began: k.start(number, rec.Try), ended: k.stop(number, rec.End), start: rec.Try, end: rec.End,
				}
				one.Ops = slices.Clone(rec.Ops)
				records[rec.ID] = one
				if missing--; missing == 0 {
					break
				}
			}
		}
	}
	for i := range results {
		for j := range results[i].Anomalies {
			a := &results[i].Anomalies[j]
			if len(a.Witness) < 2 {
				continue
			}
			if one, other := records[a.Witness[0]], records[a.Witness[1]]; one != nil && other != nil && len(other.Ops) > 0 {
				k.explainPair(a, one, other)
			}
		}
	}
}

// explainPair explains an anomaly of a transaction that shows it and one that wrote.
func (k *checker) explainPair(a *check.Anomaly, one, other *recorded) {
	n := other.Ops[0].Object
	at := slices.IndexFunc(one.Ops, func(op history.Op) bool { return op.Object == n })
	object := k.in.Name(n)
	saw, made := "no such record", "the value of "+other.ID.String()
	if at >= 0 && one.Ops[at].State == history.Whole {
		saw = "the value of " + writer(one.Ops[at].Writer).String()
	}
	overwrote := check.Edge{
		From: one.ID, To: other.ID, Kind: check.ReadWrite, Object: object, FromVersion: saw, ToVersion: made,
		Text: fmt.Sprintf("%s %v found %s in %s, and %s %v wrote in its place", one.kind, one.ID, saw, object, other.kind, other.ID),
	}
	switch a.Name {
	case dirtyName:
		if at < 0 || one.Ops[at].Writer != other.ID {
			return
		}
		a.Cycle = []check.Edge{{
			From: other.ID, To: one.ID, Kind: check.WriteRead, Object: object, FromVersion: made, ToVersion: made,
			Text: fmt.Sprintf("%s %v, which was %v, wrote %s, and %s %v read its value there", other.kind, other.ID, other.Outcome, object, one.kind, one.ID),
		}}
	case lostName:
		if at < 0 || one.Ops[at].Writer != other.Ops[0].Writer {
			return
		}
		back := overwrote
		back.From, back.To, back.ToVersion = other.ID, one.ID, "the value of "+one.ID.String()
		back.Text = fmt.Sprintf("%s %v found %s in %s, and %s %v wrote in its place", other.kind, other.ID, saw, object, one.kind, one.ID)
		a.Cycle = []check.Edge{overwrote, back}
	default: // what was stale
		if one.group != other.group {
			return
		}
		before := fmt.Sprintf("%s %v had been applied, as others saw, before %s %v began", other.kind, other.ID, one.kind, one.ID)
		if apart := one.began - other.ended; apart > 0 {
			before = fmt.Sprintf("%s %v had ended %.3g ms before %s %v began", other.kind, other.ID, float64(apart)/1e6, one.kind, one.ID)
		}
		a.Cycle = []check.Edge{overwrote, {From: other.ID, To: one.ID, Kind: check.RealTime, Text: before}}
	}
	for _, r := range []*recorded{one, other} {
		a.Spans = append(a.Spans, r.span(n))
	}
	slices.SortStableFunc(a.Spans, func(x, y check.Span) int { return cmp.Compare(x.Begin, y.Begin) })
}

// span is a transaction with what it did to a record.
func (r *recorded) span(n uint64) check.Span {
	s := check.Span{ID: r.ID, Kind: r.kind, Outcome: r.Outcome, Begin: r.start, End: r.end}
	if r.Outcome == history.Unknown {
		s.End = 0
	}
	at := slices.IndexFunc(r.Ops, func(op history.Op) bool { return op.Object == n })
	if at < 0 {
		s.Ops = []string{"did not find it"}
		return s
	}
	switch op := &r.Ops[at]; {
	case op.Observed && op.State == history.Whole:
		s.Ops = append(s.Ops, "read the value of "+writer(op.Writer).String())
	case op.Observed && op.State == history.Absent:
		s.Ops = append(s.Ops, "found no such record")
	}
	if r.Ops[at].Write {
		s.Ops = append(s.Ops, "wrote its own")
	}
	return s
}
