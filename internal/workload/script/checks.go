package script

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/invariants"
	"stroppy/internal/check/rows"
	"stroppy/internal/check/totals"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
)

func withTracked(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return len(trackedIn(h)) > 0 })
}

func withEither(runs []history.Header) bool { return withReceipts(runs) || withTracked(runs) }

func withComputed(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return trackedIn(h).computing() })
}

// checks decides about the receipts, the tracked rows and the invariants.
func checks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	receipts, err := receiptChecks(ctx, input)
	if err != nil {
		return nil, err
	}
	results, err := trackedChecks(ctx, input)
	results = merge(receipts, results)
	list, damage := invariantsOf(input.Header)
	if err = errors.Join(err, damage); err != nil || len(list) == 0 {
		return results, err
	}
	r, err := invariants.Check(ctx, invariants.Input{
		Input: input.Input, List: list, Object: invariantObject, Sums: sumObject,
		Receipts: len(receipts) > 0, Counts: len(receipts) == 0,
	})
	return append(results, r), err
}

// trackedChecks decides about the tracked rows.
func trackedChecks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	t := trackedIn(input.Header)
	if len(t) == 0 {
		return nil, nil
	}
	in := rows.Input{
		Input: input.Input, Words: words(), Restarts: t.restarts, Vanishes: t.vanishes, Computes: t.computing(),
	}
	in.Name = newObjects(input.Header).Name
	return rows.Check(ctx, in)
}

// merge adds the results about rows to the results about receipts. Both may find violations of one check.
func merge(results, more []check.Result) []check.Result {
	for _, r := range more {
		i := slices.IndexFunc(results, func(other check.Result) bool { return other.Name == r.Name })
		if i < 0 {
			results = append(results, r)
			continue
		}
		one := &results[i]
		switch {
		case r.Status == check.Invalid && one.Status == check.Invalid:
			one.Findings, one.Witness = append(one.Findings, r.Findings...), append(one.Witness, r.Witness...)
			one.Where = append(one.Where, r.Where...)
		case r.Status == check.Invalid, r.Status == check.Unknown && one.Status != check.Invalid,
			one.Status == check.NotApplicable:
			*one = r
		case r.Status == check.Valid && one.Status == check.Valid:
			one.Why = fact.Reasons{List: []fact.Fact{one.Why, r.Why}}
		}
	}
	return results
}

// receiptChecks decides about the receipts. They are the history of one row, to which each transaction adds 1.
func receiptChecks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	if input.Header.Keys[keyReceipts] != "true" {
		return nil, nil
	}
	in := totals.GroupsInput{Input: ofReceiptsAlone(input), Words: words(), Groups: []totals.Group{{Name: "receipts", Rows: 1}}}
	if report := in.OnViolation; report != nil {
		in.OnViolation = func(v check.Violation) {
			if ofReceipts(v.Check) {
				report(v)
			}
		}
	}
	results, err := totals.Groups(ctx, in)
	return slices.DeleteFunc(results, func(r check.Result) bool { return !ofReceipts(r.Name) }), err
}

// ofReceiptsAlone returns the input without invariants and tracked rows.
func ofReceiptsAlone(input recording.Input) check.Input {
	in := input.Input
	if input.Header.Keys[keyInvariants] == "" && input.Header.Keys[keyTracked] == "" {
		return in
	}
	in.History = nil
	for _, source := range input.History {
		in.History = append(in.History, receiptSource{source})
	}
	if in.End != nil {
		in.End = receiptEnd{in.End}
	}
	return in
}

// receiptSource is a history without audits, sums and rows.
type receiptSource struct{ check.Source }

// Has reports whether the history has the transactions of a client.
func (s receiptSource) Has(client uint64) bool {
	part, ok := s.Source.(interface{ Has(client uint64) bool })
	return !ok || part.Has(client)
}

func (s receiptSource) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		var tx history.Transaction
		for record, err := range s.Source.Transactions() {
			if err == nil {
				if record.Kind.Background() {
					continue
				}
				tx = *record.Transaction // the operation of its receipt is the first one
				if n := slices.IndexFunc(tx.Ops, func(op history.Op) bool { return op.Object != 0 }); n >= 0 {
					tx.Ops = tx.Ops[:n]
				}
				record.Transaction = &tx
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// receiptEnd is an end state without rows and the answers of invariants.
type receiptEnd struct{ check.EndState }

func (receiptEnd) Unexpected() []string { return nil }

func (e receiptEnd) Objects() iter.Seq2[history.Object, error] {
	return func(yield func(history.Object, error) bool) {
		for o, err := range e.EndState.Objects() {
			if (err != nil || o.N == 0) && !yield(o, err) {
				return
			}
		}
	}
}

func ofReceipts(name string) bool {
	return name == check.Durable || name == check.NoGhost || name == check.ExactlyOnce
}

// objects names the table of receipts, tracked rows, the invariants and the variables that they sum.
type objects struct {
	invariants, variables []string
	tracked               tables
}

func newObjects(h history.Header) objects {
	list, _ := invariantsOf(h) // the checks report the damage
	o := objects{variables: invariants.Variables(list), tracked: trackedIn(h)}
	for i := range list {
		o.invariants = append(o.invariants, "invariant "+list[i].Name)
	}
	return o
}

func (o objects) Name(n uint64) string {
	switch {
	case n >= sumObject && n < sumObject+2*uint64(len(o.variables)):
		name := ":" + o.variables[(n-sumObject)/2]
		if n%2 == 1 {
			name += " × 10^18"
		}
		return name
	case n >= invariantObject && n < invariantObject+uint64(len(o.invariants)):
		return o.invariants[n-invariantObject]
	}
	return o.tracked.Name(n)
}

func (o objects) Number(name string) (uint64, error) {
	if name == receiptTable {
		return 0, nil
	}
	for i, own := range o.invariants {
		if own == name || own == "invariant "+name {
			return invariantObject + uint64(i), nil
		}
	}
	if n, ok := o.tracked.number(name); ok {
		return n, nil
	}
	return 0, fmt.Errorf("there is no object %s: take %s, the name of an invariant or a tracked row, such as accounts 17",
		name, receiptTable)
}

// format writes receipts, rows, sums and audits.
func format() workload.Format {
	f := workload.FormatAmounts(func(n int64) string { return check.Group(int(n)) })
	amounts, end := f.Operation, f.End
	f.Value = invariants.Shown
	f.Operation = func(op *history.Op) string {
		switch {
		case op.State == history.Broken:
			return fmt.Sprintf("%d bytes", op.Value)
		case op.Object >= sumObject:
			return fmt.Sprintf("%+d", op.Amount)
		case op.Object < rows.First:
			return amounts(op)
		case op.Write && op.Observed:
			return "made version " + check.Group(op.Version+1)
		case op.Write:
			return "wrote, and the version is not known"
		}
		return "read version " + check.Group(op.Version) + workload.MadeBy(op.Writer)
	}
	f.End = func(a history.Object) string {
		if a.N < rows.First || a.N >= invariantObject {
			return end(a)
		}
		return " version " + check.Group(a.Version) + workload.MadeBy(a.Writer)
	}
	return f
}
