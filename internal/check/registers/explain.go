package registers

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// recorded is a transaction of an anomaly as it stands in its history.
type recorded struct {
	history.Transaction
	kind       string // the name of its kind
	began      int64  // on the clock of its group
	ended      int64
	group      int
	start, end int64 // ns since its run's start
}

func (r *recorded) member() fact.Member { return fact.Member{ID: r.ID, Kind: r.kind} }

// explain adds edges and transactions to the findings with an anomaly. They describe the first instance,
// whose two transactions are the first two of the finding. explain reads the history once more, but only if
// there is an anomaly.
func (k *checker) explain(results []check.Result) {
	records := map[history.ID]*recorded{}
	for f := range anomalies(results) {
		for _, id := range f.Transactions[:min(2, len(f.Transactions))] {
			records[id] = nil
		}
	}
	k.readRecords(records)
	for f := range anomalies(results) {
		if len(f.Transactions) < 2 {
			continue
		}
		if one, other := records[f.Transactions[0]], records[f.Transactions[1]]; one != nil && other != nil {
			k.explainPair(f, one, other)
		}
	}
}

// anomalies yields the findings that have an anomaly.
func anomalies(results []check.Result) func(yield func(f *check.Finding) bool) {
	return func(yield func(f *check.Finding) bool) {
		for i := range results {
			for j := range results[i].Findings {
				if f := &results[i].Findings[j]; f.Anomaly != "" && !yield(f) {
					return
				}
			}
		}
	}
}

// readRecords fills in the transactions with these IDs.
func (k *checker) readRecords(records map[history.ID]*recorded) {
	left := len(records)
	for number, source := range k.in.History {
		if left == 0 {
			return
		}
		var damage error
		for rec := range check.Each(&k.Watch, "the history", source.Transactions(), &damage) {
			one, wanted := records[rec.ID]
			if !wanted || one != nil {
				continue
			}
			one = &recorded{
				Transaction: *rec.Transaction, kind: k.names[rec.Kind], group: k.group[number],
				began: k.start(number, rec.Try), ended: k.stop(number, rec.End), start: rec.Try, end: rec.End,
			}
			one.Ops = slices.Clone(rec.Ops)
			records[rec.ID] = one
			if left--; left == 0 {
				break
			}
		}
	}
}

// explainPair explains an anomaly between a transaction that shows it and one that wrote.
func (k *checker) explainPair(f *check.Finding, one, other *recorded) {
	n := other.Ops[0].Object
	at := slices.IndexFunc(one.Ops, func(op history.Op) bool { return op.Object == n })
	found := at >= 0 && one.Ops[at].State == history.Whole
	value := fact.Member{}
	if found {
		value = k.writerAt(n, one.Ops[at].Writer)
	}
	replaced := func(reader, writer *recorded) check.Edge {
		e := check.Edge{
			From: reader.ID, To: writer.ID, Kind: check.ReadWrite, Object: k.in.Name(n),
			FromVersion: "no record", ToVersion: versionOf(writer.ID),
			Why: fact.RegisterReplaced{
				Reader: reader.member(), Object: k.Object(n), Absent: !found, Value: value, Writer: writer.member(),
			},
		}
		if found {
			e.FromVersion = versionOf(value.ID)
		}
		return e
	}
	switch f.Anomaly {
	case dirtyName:
		if at < 0 || one.Ops[at].Writer != other.ID {
			return
		}
		f.Cycle = []check.Edge{{
			From: other.ID, To: one.ID, Kind: check.WriteRead, Object: k.in.Name(n),
			FromVersion: versionOf(other.ID), ToVersion: versionOf(other.ID),
			Why: fact.RegisterReadOf{Writer: other.member(), Outcome: other.Outcome, Object: k.Object(n), Reader: one.member()},
		}}
	case lostName:
		if at < 0 || one.Ops[at].Writer != other.Ops[0].Writer {
			return
		}
		f.Cycle = []check.Edge{replaced(one, other), replaced(other, one)}
	default: // a stale read
		if one.group != other.group {
			return
		}
		f.Cycle = []check.Edge{replaced(one, other), k.inTime(other, one)}
	}
	for _, r := range []*recorded{one, other} {
		f.Spans = append(f.Spans, k.span(r, n))
	}
	slices.SortStableFunc(f.Spans, func(x, y check.Span) int { return cmp.Compare(x.Begin, y.Begin) })
}

// versionOf returns the name of a writer's value.
func versionOf(writer history.ID) string {
	if writer == 0 {
		return "value of the load"
	}
	return "value of " + writer.String()
}

// inTime returns the edge from a write to a transaction that began after the write was applied.
func (k *checker) inTime(write, later *recorded) check.Edge {
	e := check.Edge{From: write.ID, To: later.ID, Kind: check.RealTime}
	if apart := later.began - write.ended; write.Outcome == history.Committed && apart > 0 {
		e.Why = fact.RegisterEnded{First: write.member(), Second: later.member(), Apart: time.Duration(apart), AtLeast: k.inexact()}
	} else {
		e.Why = fact.RegisterSeenBefore{First: write.member(), Second: later.member()}
	}
	return e
}

// span returns a transaction with its operations on a record.
func (k *checker) span(r *recorded, n uint64) check.Span {
	s := check.Span{ID: r.ID, Kind: r.kind, Outcome: r.Outcome, Begin: r.start, End: r.end}
	if r.Outcome == history.Unknown {
		s.End = 0
	}
	at := slices.IndexFunc(r.Ops, func(op history.Op) bool { return op.Object == n })
	if at < 0 {
		s.Did = []fact.Fact{fact.RegisterDidOmit{}}
		return s
	}
	switch op := &r.Ops[at]; {
	case op.Observed && op.State == history.Whole:
		s.Did = append(s.Did, fact.RegisterDidRead{Writer: k.writerAt(n, op.Writer)})
	case op.Observed && op.State == history.Absent:
		s.Did = append(s.Did, fact.RegisterDidMiss{})
	}
	if r.Ops[at].Write {
		s.Did = append(s.Did, fact.RegisterDidWrite{})
	}
	return s
}
